package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// sample and batch are the shape of an upload of samples.
type sample struct {
	Timestamp      healthlab.Time  `json:"timestamp" wire:"offset"`
	TimezoneOffset *int            `json:"timezone_offset"`
	Type           *string         `json:"type"`
	Unit           string          `json:"unit"`
	Value          float64         `json:"value"`
	Start          *healthlab.Time `json:"start,omitempty"`
	End            *healthlab.Time `json:"end,omitempty"`
}

type batch struct {
	Stage    string   `json:"stage"`
	Provider string   `json:"provider"`
	Data     []sample `json:"data"`
}

func samples(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"stage":"daily","provider":"manual","data":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"timestamp":"2026-03-01T%02d:%02d:%02d+00:00","timezone_offset":3600,"type":"automatic","unit":"bpm","value":%d.%d}`,
			i/3600%24, i/60%60, i%60, 50+i%90, i%10)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		body := samples(n)
		b.Run(fmt.Sprintf("wire/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				var v batch
				if ps := wire.Decode(body, &v, wire.Options{}); len(ps) > 0 {
					b.Fatal(ps)
				}
			}
		})
		b.Run(fmt.Sprintf("encoding_json/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				var v batch
				if err := json.Unmarshal(body, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestDecode_allocatesLittlePerSample(t *testing.T) {
	body := samples(1000)
	n := testing.AllocsPerRun(10, func() {
		var v batch
		wire.Decode(body, &v, wire.Options{})
	})
	// Two pointers of each sample, and what it takes to grow a list.
	require.Less(t, n, 2*1000+40.0)
}

// Decoding takes time in proportion to the length of the input, also of inputs made to be
// slow.
func TestDecode_takesLinearTimeOnHostileInput(t *testing.T) {
	const n = 200_000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	keys := "{" + b.String() + `"z":1}`
	for name, body := range map[string]string{
		"unknown keys":   keys,
		"free keys":      `{"name":"x","free":` + keys + `}`,
		"open brackets":  strings.Repeat("[", n),
		"one long text":  `{"name":"` + strings.Repeat("x", n) + `"}`,
		"one long key":   `{"` + strings.Repeat("x", n) + `":1}`,
		"one long digit": `{"name":"x","rate":` + strings.Repeat("1", n) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			allocs := testing.AllocsPerRun(1, func() {
				var v form
				wire.Decode([]byte(body), &v, wire.Options{})
			})
			require.Less(t, allocs, 10_000.0)
		})
	}
}
