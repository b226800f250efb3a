package hl7_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/mllp"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
)

// One connection sends every kind of bad input and then a good report, which is accepted.
func TestConnection_acceptsAGoodReportAfterBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		n := b.submit(submission())
		ours, theirs := net.Pipe()
		go mllp.NewServer(b.back, &mllp.ServerOptions{FrameTimeout: time.Hour}).ServeConn(t.Context(), theirs)
		answers := mllp.NewReader(ours, 0)
		send := func(text string) {
			_, err := ours.Write([]byte(text))
			require.NoError(t, err)
		}
		answer := func(code, id string) {
			t.Helper()
			raw, err := answers.Next()
			require.NoError(t, err)
			m, err := er7.Parse(raw, nil)
			require.NoError(t, err)
			require.Equal(t, code+" "+id, m.Segment("MSA").Field(1).Text()+" "+m.Segment("MSA").Field(2).Text())
			require.NotContains(t, string(raw), "ROE")
		}
		frame := func(text string) string { return string(mllp.Append(nil, []byte(text))) }
		good := string(b.report(n, ana, ferrP, ferritin("9", "L", "P")))

		send("\x0b" + good)
		chunk := strings.Repeat("x", 1<<20)
		for range prove.Count(32, 1024) { // a gigabyte when it is proven
			send(chunk)
		}
		send("\x1c\r")
		answer("AR", "")
		send("\x0b" + good[:len(good)/2]) // no end, and nothing follows
		answer("AR", "")
		send("\x0b" + good[:len(good)/2] + frame(good)) // no end, and another frame follows
		answer("AR", "")
		answer("AA", "R1")
		send(frame(strings.NewReplacer("ROE", "RO\xcb", "|2.5.1\r", "|2.5.1||||||UNICODE UTF-8\r").Replace(good)))
		answer("AE", "R1")
		send(frame(strings.Replace(good, "|2.5.1\r", "|2.5.1||||||8859/1\r", 1)))
		answer("AA", "R1")
		send(frame(strings.Replace(good, "|2.5.1\r", "|2.5.1||||||ISO IR87\r", 1)))
		answer("AE", "")
		send(frame("M\x00S\x00H\x00|\x00"))
		answer("AE", "")
		send(frame("GET / HTTP/1.1\r\n\r\n"))
		answer("AE", "")
		send(frame(string(b.report(n, ana, ferrF, ferritin("9", "L", "F"), ironF, iron))))
		answer("AA", "R2")
		require.Equal(t, []orders.Trigger{orders.PartialResult, orders.FinalResult}, triggers(b.told()))
		require.NoError(t, ours.Close())
		synctest.Wait()
	})
}

// A laboratory accepts an order and loses the connection before it answers: it gets the same
// message again, and has one order in the end.
func TestSubmit_lostAnswerResendsTheSameMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		got := map[string]int{} // by control id: how a laboratory tells repeats
		dials := 0
		dial := func(context.Context, string) (net.Conn, error) {
			mu.Lock()
			dials++
			deaf := dials%4 != 0
			mu.Unlock()
			ours, theirs := net.Pipe()
			go mllp.NewServer(mllp.HandlerFunc(func(_ context.Context, raw []byte, _ error) []byte {
				m, err := er7.Parse(raw, nil)
				if err != nil {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				if got[m.ControlID()]++; deaf {
					return nil
				}
				return []byte("MSH|^~\\&|LIS\rMSA|AA|" + m.ControlID())
			}), nil).ServeConn(t.Context(), theirs)
			return ours, nil
		}
		client := mllp.NewClient("lab:2575", &mllp.ClientOptions{Dial: dial})
		back := hl7.New(client, memory.New(&memory.Options{UsersElsewhere: true}).LabJournal(), nil)
		s := submission()
		tries := 0
		for {
			tries++
			accepted, err := back.Submit(t.Context(), s)
			if err == nil {
				require.NotEmpty(t, accepted.SampleID)
				break
			}
			require.ErrorIs(t, err, healthlab.Unavailable)
		}
		require.Equal(t, 2, tries)
		require.Len(t, got, 1, "one message, however often it came")
		require.NoError(t, client.Close())
		synctest.Wait()
	})
}

// Two processes share one journal, and a laboratory sends every message twice at the same
// time: the service gets each report once.
func TestReport_sentTwiceToTwoProcessesIsHandledOnce(t *testing.T) {
	j := memory.New(&memory.Options{UsersElsewhere: true}).LabJournal()
	one := newBenchOn(t, j, nil)
	two := hl7.New(one.lab, j, nil)
	var all sync.WaitGroup
	const n = 40
	numbers := make([]string, n)
	for i := range n {
		s := submission()
		for _, back := range []*hl7.Backend{one.back, two} {
			all.Go(func() {
				accepted, err := back.Submit(t.Context(), s)
				if err != nil && !errors.Is(err, healthlab.Conflict) {
					t.Error(err)
				}
				one.mu.Lock()
				defer one.mu.Unlock()
				numbers[i] = accepted.SampleID
			})
		}
	}
	all.Wait()
	for _, number := range numbers {
		raw := one.report(number, ana, ferrF, ferritin("9", "L", "F"), ironF, iron)
		for _, back := range []*hl7.Backend{one.back, two, one.back} {
			all.Go(func() {
				if len(back.Handle(t.Context(), raw, nil)) == 0 {
					t.Error("no answer")
				}
			})
		}
	}
	all.Wait()
	told := one.told()
	require.Len(t, told, n)
	seen := map[orders.OrderID]bool{}
	for _, m := range told {
		require.False(t, seen[m.Order])
		seen[m.Order] = true
	}
}
