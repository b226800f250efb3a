package hl7_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
)

// badMessages spoil a message.
var badMessages = []func(random *rand.Rand, m string) string{
	func(random *rand.Rand, m string) string { return m[:1+random.IntN(len(m)-1)] },
	func(random *rand.Rand, m string) string { return m[1+random.IntN(len(m)-1):] },
	func(random *rand.Rand, m string) string { return m + "\r" + string(rune(random.IntN(32))) },
	func(*rand.Rand, string) string { return "MSH" },
	func(*rand.Rand, string) string { return "MSH|" },
	func(*rand.Rand, string) string { return "MSH|^~\\&" },
	func(*rand.Rand, string) string { return "no message" },
	func(*rand.Rand, string) string { return "BHS" },
	func(*rand.Rand, string) string { return "BTS|\xff" },
	func(_ *rand.Rand, m string) string { return strings.Replace(m, "PID|1|", "PID|1|\xff", 1) },
	func(_ *rand.Rand, m string) string { return strings.Replace(m, "MSH|^~\\&", "MSH|||||", 1) },
	func(_ *rand.Rand, m string) string { return strings.Replace(m, "ORU^R01^ORU_R01", "", 1) },
	func(_ *rand.Rand, m string) string { return strings.Replace(m, "ORU^R01^ORU_R01", "QRY^A19", 1) },
	func(_ *rand.Rand, m string) string {
		return strings.Replace(m, "|P|2.5.1", "|P|2.5.1||||||NO SUCH SET", 1)
	},
	func(_ *rand.Rand, m string) string { return strings.Replace(m, "OBX|1", "O\x01X|1", 1) },
	func(_ *rand.Rand, m string) string { return strings.Replace(m, "OBX|1|NM", "OBX|1|ED", 1) },
	func(_ *rand.Rand, m string) string { return strings.Replace(m, "20260302", "2026ab02", 1) },
	func(random *rand.Rand, m string) string {
		at := random.IntN(len(m))
		return m[:at] + string([]byte{byte(random.IntN(256))}) + m[at+1:]
	},
}

// A batch with one bad message has the results of the others: each order has what it has without
// the bad one.
func TestBatch_invalidMessageDoesNotAffectTheOthers(t *testing.T) {
	for c := range prove.Sequential(200, 200, 10_000) {
		random := rand.New(rand.NewPCG(uint64(c), 44))
		b := newBench(t, nil)
		want := map[orders.OrderID]string{}
		texts := []string{}
		for i := range 2 + random.IntN(4) {
			s := submission()
			s.Order.PatientDetails.FirstName = ptr(fmt.Sprintf("Ana%c", 'a'+i))
			n := b.submit(s)
			value := fmt.Sprint(20 + random.IntN(100))
			patient := strings.Replace(ana, "ANA", *s.Order.PatientDetails.FirstName, 1)
			texts = append(texts, string(b.report(n, patient, strings.ReplaceAll(ferrF, "F1^LIS", fmt.Sprintf("F%d^LIS", i)), ferritin(value, "N", "F"))))
			want[s.Order.ID] = value
		}
		other := submission()
		other.Order.PatientDetails.LastName = ptr("Other")
		patient := strings.Replace(ana, `ROE \T\ SOHNE`, "OTHER", 1)
		bad := badMessages[random.IntN(len(badMessages))](random, string(b.report(b.submit(other), patient, ferrF, ferritin("9", "L", "F"), ironF, iron)))
		texts = slices.Insert(texts, random.IntN(len(texts)+1), bad)
		raw := "BHS|^~\\&|LIS\r" + strings.Join(texts, "\r") + "\rBTS|2\r"
		if random.IntN(2) == 0 {
			answers, err := er7.ParseBatch(b.back.Handle(t.Context(), []byte(raw), nil), nil)
			require.NoError(t, err, "case %d", c)
			require.GreaterOrEqual(t, len(answers.Messages()), len(want), "case %d: an answer for each", c)
		} else {
			_ = b.back.ReceiveAll(t.Context(), []byte(raw)) // whether the bad message is one
		}
		got := map[orders.OrderID]string{}
		for _, m := range b.told() {
			if _, ok := want[m.Order]; ok {
				got[m.Order] = values(m)["Ferritin"]
			}
		}
		require.True(t, maps.Equal(want, got), "case %d: %q: %v, want %v", c, bad, got, want)
	}
}

// badResults are results that cannot be read.
var badResults = []string{
	"OBX|9|ED|PDF^Report^L||LIS^AP^PDF^Base64^not base64||||||F", "OBX|9|NM|||||||||F", "OBX|9|NM|x^X^L||many||||||F", "OBX", "OBX|", "OBX|9|ZZ|x^X^L||1||||||F",
	"OBX|9|NM|x^X^L||1||||||?", "OBX|9|DT|x^X^L||2026-13-45||||||F", "OBX|9|SN|x^X^L||>^x^-^y||||||F", "OBX|9|RP|x^X^L||nowhere||||||F", "NTE", "ZZZ|1|\\X0\\", "SPM", "SPM|1||||", "OBX|9|NM|x^X^L||1e999||||||F",
	"OBX|9|NM|x^X^L||1|ug/L|x-y|||||F|||2026ab", "TQ1|x", "OBR", "ORC",
}

// A message with one bad result has the others.
func TestMessage_invalidResultDoesNotAffectTheOthers(t *testing.T) {
	for c := range prove.Sequential(200, 200, 10_000) {
		random := rand.New(rand.NewPCG(uint64(c), 45))
		b := newBench(t, nil)
		n := b.submit(submission())
		segments := []string{ferrF, ferritin("77", "N", "F"), ironF, iron}
		bad := badResults[random.IntN(len(badResults))]
		raw := b.report(n, append([]string{ana}, slices.Insert(segments, 2+2*random.IntN(2), bad)...)...)
		b.back.Handle(t.Context(), raw, nil)
		told := b.told()
		require.NotEmpty(t, told, "case %d: %s", c, bad)
		got := values(told[len(told)-1])
		require.Equal(t, "77", got["Ferritin"], "case %d: %s", c, bad)
		require.Equal(t, "90", got["Iron"], "case %d: %s", c, bad)
	}
}
