package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/mllp"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// mllpLab is a laboratory inside the test: it takes every order, and sends what the test
// says.
type mllpLab struct {
	*testing.T
	address string
	results *mllp.Client
	mu      sync.Mutex
	numbers []string // of the orders that it took, each once
}

func newMLLPLab(t *testing.T, results string) *mllpLab {
	t.Helper()
	l := &mllpLab{T: t, results: mllp.NewClient(results, nil)}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l.address = listener.Addr().String()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = mllp.NewServer(mllp.HandlerFunc(l.take), nil).Serve(t.Context(), listener)
	}()
	t.Cleanup(func() {
		_ = l.results.Close()
		<-served // the context of the test has ended
	})
	return l
}

func (l *mllpLab) take(_ context.Context, message []byte, _ error) []byte {
	m, err := er7.Parse(message, nil)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if number := m.Segment("ORC").Field(2).Text(); !slices.Contains(l.numbers, number) { // an order may come twice
		l.numbers = append(l.numbers, number)
	}
	return []byte("MSH|^~\\&|LIS\rMSA|AA|" + m.ControlID())
}

// number returns the number of the order that it took last, once there are n.
func (l *mllpLab) number(n int) string {
	var last string
	wait(l.T, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.numbers) < n {
			return false
		}
		last = l.numbers[len(l.numbers)-1]
		return true
	})
	return last
}

// send sends messages, and returns the codes of the acknowledgements.
func (l *mllpLab) send(text string) []string {
	l.Helper()
	raw, err := l.results.Send(l.Context(), []byte(text), func([]byte) bool { return true })
	require.NoError(l, err)
	answers, err := er7.ParseBatch(raw, nil)
	require.NoError(l, err)
	var codes []string
	for _, m := range answers.Messages() {
		codes = append(codes, m.Segment("MSA").Field(1).Text())
	}
	return codes
}

// What a laboratory sends comes out over HTTP, whichever store keeps it.
func TestHL7_resultsAreReadOverHTTPFromEachStore(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(t *testing.T) []string{
		"memory": func(*testing.T) []string { return nil },
		"folder": func(t *testing.T) []string { return []string{"-data", t.TempDir()} },
		"database": func(t *testing.T) []string {
			return []string{"-database-url", pgtest.Empty(t), "-secret-file", secretFile(t), "-files", t.TempDir()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := freeAddress(t)
			lab := newMLLPLab(t, results)
			args := append(store(t), "-lab-hl7", lab.address, "-lab-hl7-listen", results)
			p := start(t, args...)
			var user struct {
				ID string `json:"user_id"`
			}
			ask(p, "POST", "/v2/user", `{"client_user_id":"kim"}`, 200, &user)
			born := time.Now().Year() - 40
			placed := 0
			order := func() (id, number string) {
				var out struct{ Order struct{ ID string } }
				ask(p, "POST", "/v3/order", fmt.Sprintf(anOrder, user.ID, walkInLabTest, born), 200, &out)
				placed++
				return out.Order.ID, lab.number(placed)
			}
			example := func(name, number string) string {
				raw, err := os.ReadFile(filepath.Join("..", "..", "adapters", "labs", "hl7", "testdata", name))
				require.NoError(t, err)
				filler := fmt.Sprintf("F1-%d", placed) // a laboratory gives each order a number of its own
				return strings.NewReplacer("$", number, "F1", filler, "ROE^ANA||19840509", fmt.Sprintf("PERSON^KIM||%d0102", born)).Replace(string(raw))
			}
			ended := func(id, status string) (detail string) {
				var o struct {
					Status string
					Events []struct {
						StatusDetail *string `json:"status_detail"`
					}
				}
				wait(t, func() bool {
					p.get("/v3/order/"+id, &o)
					return o.Status == status
				})
				if d := o.Events[len(o.Events)-1].StatusDetail; d != nil {
					detail = *d
				}
				return detail
			}
			result := func(id string) string {
				var raw json.RawMessage
				p.get("/v3/order/"+id+"/result", &raw)
				return string(raw)
			}

			id, number := order()
			if name == "database" { // the order is known after a stop
				p.quit()
				p = start(t, args...)
			}
			require.Equal(t, []string{"AA"}, lab.send(example("culture.hl7", number)))
			ended(id, "completed")
			got := result(id)
			for _, want := range []string{
				`"group":"2"`, `{"code":"ECOLI","text":"E. coli","system":"L"}`, `"text":"MALDI-TOF"`, `"filler_number":"F1-1"`, `"value":"Klebsiella pneumoniae"`,
				`"specimen_type":{"text":"Urine specimen"`, `"specimen_site":{"text":"Prostatic secretion"`, `"conditions":[{"text":"Autolyzed"`,
				`"reject_reasons":[{"text":"Volume questionable"`, `"notes":"Patient took antibiotics before collection\nVisit note: seen by night staff"`,
			} {
				require.Contains(t, got, want)
			}

			id, number = order()
			require.Equal(t, []string{"AA"}, lab.send(example("missing.hl7", number)))
			ended(id, "completed")
			var missing struct {
				Missing []struct{ Name, Note string } `json:"missing_results"`
			}
			require.NoError(t, json.Unmarshal([]byte(result(id)), &missing))
			notes := map[string]string{}
			for _, m := range missing.Missing {
				notes[m.Name] = m.Note
			}
			require.Equal(t, "TNP", notes["Iron"])
			require.Equal(t, "Test not performed\nTube clotted", notes["Transferrin"])
			require.Contains(t, notes, "Iron saturation")
			require.Contains(t, notes, "Iron panel")

			id, number = order()
			require.Equal(t, []string{"AA"}, lab.send(example("rejected.hl7", number)))
			require.Equal(t, "sample_stability_exceeded", ended(id, "failed"))
			require.Contains(t, result(id), "SAMPLE REJECTED: shipped frozen")

			// A batch of two messages, the first one with a document that is damaged.
			id, number = order()
			first := strings.TrimSuffix(example("old_version.hl7", number), "\r") + "\rOBX|2|ED|PDF^Report^L||LIS^AP^PDF^Base64^not base64||||||F\r"
			require.Equal(t, []string{"AE", "AA"}, lab.send("FHS|^~\\&\rBHS|^~\\&\r"+first+example("specimen_first.hl7", "NOSUCHORDER")+"BTS|2\rFTS|1\r"))
			ended(id, "completed")
			require.Contains(t, result(id), `"text":"Throat swab"`)
			var held struct {
				Data []struct {
					Markers []struct{ Name string }
				}
			}
			wait(t, func() bool {
				p.get("/v3/unmatched_result", &held)
				return len(held.Data) == 1
			})
			require.Len(t, held.Data[0].Markers, 3)
			p.quit()
		})
	}
}
