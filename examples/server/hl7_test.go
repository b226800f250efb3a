package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startLab builds and runs examples/hl7lab, and returns the first line that it prints. It ends
// with the test.
func startLab(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-delay", "100ms", "-stray"}, args...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, lines)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	return strings.TrimSpace(first)
}

// freeAddress returns an address of this machine that is free.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// walkInLabTest is a walk-in test of lab.json, with eight markers.
const walkInLabTest = "15073f4e-5ee9-579e-8b05-9165174c382e"

// The server and examples/hl7lab together: an order placed over HTTP gets its results from
// the laboratory, and a result that fits no order waits for review.
func TestHL7_orderGetsItsResultsFromTheLaboratory(t *testing.T) {
	t.Parallel()
	lab := filepath.Join(t.TempDir(), "hl7lab")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", lab, "../hl7lab").CombinedOutput()
	require.NoError(t, err, string(out))
	for name, connect := range map[string]func(t *testing.T) []string{
		"MLLP": func(t *testing.T) []string {
			results := freeAddress(t)
			line := startLab(t, lab, "-serve", "127.0.0.1:0", "-results", results)
			orders, _, ok := strings.Cut(strings.TrimPrefix(line, "lab: takes orders at "), ", ")
			require.True(t, ok, line)
			return []string{"-lab-hl7", orders, "-lab-hl7-listen", results}
		},
		"folder": func(t *testing.T) []string {
			folder := t.TempDir()
			startLab(t, lab, "-serve", folder)
			return []string{"-lab-hl7", folder}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, connect(t)...)
			var user struct {
				ID string `json:"user_id"`
			}
			ask(p, "POST", "/v2/user", `{"client_user_id":"kim"}`, 200, &user)
			var placed struct{ Order struct{ ID string } }
			ask(p, "POST", "/v3/order", fmt.Sprintf(anOrder, user.ID, walkInLabTest, time.Now().Year()-40), 200, &placed)
			var order struct {
				Status   string
				SampleID string `json:"sample_id"`
			}
			wait(t, func() bool {
				p.get("/v3/order/"+placed.Order.ID, &order)
				return order.Status == "completed"
			})
			var result struct {
				Results []struct {
					Result         string
					LOINC          string
					Methods        []struct{ Text string }
					SourceSampleID string     `json:"source_sample_id"`
					SourceMarkers  []struct{} `json:"source_markers"`
				}
				MissingResults    []struct{} `json:"missing_results"`
				SampleInformation map[string]struct {
					SpecimenType struct{ Text string } `json:"specimen_type"`
				} `json:"sample_information"`
			}
			p.get("/v3/order/"+placed.Order.ID+"/result", &result)
			require.Len(t, result.Results, 8)
			require.Empty(t, result.MissingResults)
			for _, r := range result.Results {
				require.Equal(t, "42", r.Result)
				require.NotEmpty(t, r.LOINC)
				require.Equal(t, "Made up", r.Methods[0].Text)
				require.Len(t, r.SourceMarkers, 1)
				require.Equal(t, "Serum", result.SampleInformation[r.SourceSampleID].SpecimenType.Text)
			}
			var held struct {
				Data []struct {
					Status  string
					Code    string `json:"decision_code"`
					Lab     struct{ Slug string }
					Markers []struct{}
				}
			}
			wait(t, func() bool {
				p.get("/v3/unmatched_result", &held)
				return len(held.Data) == 1
			})
			require.Equal(t, "pending_customer_review", held.Data[0].Status)
			require.Equal(t, "no_match", held.Data[0].Code)
			require.Equal(t, "northlab", held.Data[0].Lab.Slug)
			require.Len(t, held.Data[0].Markers, 8)
			p.quit()
		})
	}
}

func TestHL7_addressOfAnotherHostIsRefused(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"address that is not this host": {"-lab-hl7", "127.0.0.1:2575", "-lab-hl7-listen", "192.0.2.1:2576"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), append([]string{"-addr", "127.0.0.1:0"}, inMemory(args)...), io.Discard, io.Discard)
			require.ErrorContains(t, err, "-lab-hl7")
		})
	}
}
