package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/labreport"
)

func reportPDF() []byte { return reportOf("03/14/2025", "112", "0.92") }

// reportOf is the report with another day of the collection, glucose and creatinine.
func reportOf(day, glucose, creatinine string) []byte {
	var page strings.Builder
	for i, line := range []string{
		"50 Northfield Clinical Laboratory", "50 Patient: Amara Hartley|300 Collected: " + day, "50 DOB: 05/21/1980|300 Specimen: S1234567",
		"50 Test|220 Result|330 Units|430 Reference Range", "50 Glucose|220 " + glucose + "|330 mg/dL|430 70-99", "50 Creatinine|220 " + creatinine + "|330 mg/dL|430 0.60-1.30",
		"50 Sodium|220 139|330 mmol/L|430 135-146", "50 Potassium|220 4.1|330 mmol/L|430 3.5-5.3",
	} {
		for _, cell := range strings.Split(line, "|") {
			x, text, _ := strings.Cut(cell, " ")
			fmt.Fprintf(&page, "BT /F1 10 Tf %s %d Td (%s) Tj ET\n", x, 750-20*i, text)
		}
	}
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, object := range []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", page.Len(), page.String()),
	} {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	table := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF", len(at)+1, table)
	return b.Bytes()
}

// A report goes in, and its results come out with an event; its file lies sealed.
func TestLabReport_uploadGivesResultsAndAnEvent(t *testing.T) {
	t.Parallel()
	events, receiver := jobEvents(t, false)
	dir := t.TempDir()
	p := start(t, "-webhook-url", receiver, "-files", dir)
	status, made := send(p, oneUser(p), "report.pdf", reportPDF())
	require.Equal(t, http.StatusOK, status, string(made))
	require.Contains(t, string(made), `"status":"upload_pending"`)

	require.Equal(t, "started", (<-events).Data.Status)
	done := <-events
	require.Equal(t, "lab_report.parsing_job.updated", done.Type)
	require.Equal(t, "completed", done.Data.Status)
	require.Len(t, done.Data.Data.Results, 4)
	require.Equal(t, "112", done.Data.Data.Results[0].Value)
	files, err := filepath.Glob(filepath.Join(dir, "lab-reports", "*", "*", "0.age"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	sealed, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "%PDF")
	p.quit()
}

// BenchmarkAPIWhileReading measures what other callers notice of reports that are being
// read: the slow end of 2,000 answers when nothing is read, and while two workers read
// pictures.
func BenchmarkAPIWhileReading(b *testing.B) {
	for name, files := range map[string][][]byte{"idle": nil, "reading": {drawn(1), drawn(2), drawn(3), drawn(4)}} {
		b.Run(name, func(b *testing.B) {
			c, _, err := flags([]string{"-store", "memory", "-report-workers", "2"}, io.Discard)
			require.NoError(b, err)
			kept, err := openStorage(b.Context(), c.at(), nil)
			require.NoError(b, err)
			t, err := newTelemetry(b.Context(), "")
			require.NoError(b, err)
			s, err := build(b.Context(), c, kept, t, "http://127.0.0.1")
			require.NoError(b, err)
			server := httptest.NewServer(s.handler)
			defer server.Close()
			user, err := s.Health.CreateUser(b.Context(), s.team, healthdata.NewUser{ClientUserID: "patient-77"})
			require.NoError(b, err)
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			var running sync.WaitGroup
			running.Go(func() { _ = s.Reports.Run(ctx) })
			feed := func() {
				for _, data := range files {
					_, err := s.Reports.Create(b.Context(), s.team, labreport.Upload{User: user.ID, Files: []labreport.File{{Data: data}}})
					require.NoError(b, err)
				}
			}
			for b.Loop() {
				for range 3 {
					feed()
				}
				var took []time.Duration
				for range 2000 {
					time.Sleep(5 * time.Millisecond) // so that all parts of reading are met
					r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+"/v2/user/"+user.ID.String(), nil)
					require.NoError(b, err)
					r.Header.Set("x-service-api-key", s.apiKey)
					began := time.Now()
					answer, err := http.DefaultClient.Do(r)
					require.NoError(b, err)
					_, _ = io.Copy(io.Discard, answer.Body)
					took = append(took, time.Since(began))
					require.NoError(b, answer.Body.Close())
					require.Equal(b, 200, answer.StatusCode)
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/p50")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/p99")
			}
			stop()
			running.Wait()
			for _, closer := range s.closers {
				require.NoError(b, closer())
			}
		})
	}
}

// drawn is a picture with much detail, to keep the reader of pictures busy.
func drawn(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	g := image.NewGray(image.Rect(0, 0, 1700, 2200))
	for i := range g.Pix {
		g.Pix[i] = byte(235 + r.IntN(20))
	}
	for y := 100; y < 2100; y += 40 {
		for x := 100; x < 1500; x += 14 {
			if r.IntN(7) == 0 {
				continue
			}
			for range 40 {
				g.SetGray(x+r.IntN(10), y+r.IntN(22), color.Gray{Y: 20})
			}
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, g)
	return b.Bytes()
}
