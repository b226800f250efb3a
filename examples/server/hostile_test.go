package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
)

// send uploads a file for a user, and returns the status and the body of the answer.
func send(p *program, user string, name string, data []byte, fields ...string) (int, []byte) {
	p.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	require.NoError(p, form.WriteField("user_id", user))
	for _, field := range fields {
		require.NoError(p, form.WriteField(field, "true"))
	}
	part, err := form.CreateFormFile("file", name)
	require.NoError(p, err)
	_, err = part.Write(data)
	require.NoError(p, err)
	require.NoError(p, form.Close())
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.url+"/lab_report/v1/parser/job", &body)
	require.NoError(p, err)
	r.Header.Set("content-type", form.FormDataContentType())
	r.Header.Set("x-service-api-key", p.key)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(p, err)
	return answer.StatusCode, b
}

// oneUser makes a user and returns its id.
func oneUser(p *program) string {
	p.Helper()
	post(p, "/v2/user/", `{"client_user_id":"patient-77"}`)
	var users struct {
		Users []struct {
			UserID string `json:"user_id"`
		}
	}
	p.get("/v2/user/", &users)
	return users.Users[0].UserID
}

// zeros is a compressed run of n bytes.
func zeros(n int) []byte {
	var out bytes.Buffer
	z, _ := zlib.NewWriterLevel(&out, zlib.BestCompression)
	chunk := make([]byte, 1<<20)
	for ; n > 0; n -= len(chunk) {
		_, _ = z.Write(chunk)
	}
	_ = z.Close()
	return out.Bytes()
}

// pdfWith is a PDF of pages with a content and its dictionary.
func pdfWith(pages int, media, dict string, content []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%%PDF-1.7\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n2 0 obj << /Type /Pages /Count %d /Kids [%s] >> endobj\n",
		pages, strings.Repeat("3 0 R ", pages))
	fmt.Fprintf(&b, "3 0 obj << /Type /Page /Parent 2 0 R /MediaBox %s /Contents 4 0 R /Resources << /XObject << /X 4 0 R >> >> >> endobj\n", media)
	fmt.Fprintf(&b, "4 0 obj << /Length %d %s >>\nstream\n%s\nendstream endobj\ntrailer << /Root 1 0 R /Size 5 >>\n%%%%EOF", len(content), dict, content)
	return b.Bytes()
}

// pngOf is a PNG that declares a size and holds data.
func pngOf(w, h uint32, data []byte) []byte {
	out := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(name string, body []byte) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
		from := len(out)
		out = append(append(out, name...), body...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[from:]))
	}
	head := make([]byte, 13)
	binary.BigEndian.PutUint32(head, w)
	binary.BigEndian.PutUint32(head[4:], h)
	head[8], head[9] = 8, 0
	chunk("IHDR", head)
	chunk("IDAT", data)
	chunk("IEND", nil)
	return out
}

// noisy is a picture in which there is nothing to read, and much that looks like it.
func noisy(r *rand.Rand, w, h int) *image.Gray {
	g := image.NewGray(image.Rect(0, 0, w, h))
	for i := range g.Pix {
		g.Pix[i] = byte(r.Uint32())
	}
	for range w * h / 2000 {
		x, y := r.IntN(w), r.IntN(h)
		for k := range 6 + r.IntN(20) {
			g.SetGray(x+k, y, color.Gray{})
		}
	}
	return g
}

// hostileFiles returns n files: those that were made to harm, then damaged ones. If n is less than
// the number of those made to harm, every second one of them is left out.
func hostileFiles(n int) [][]byte {
	r := rand.New(rand.NewPCG(5, 3))
	const letter = "[0 0 612 792]"
	var jpg, small bytes.Buffer
	_ = jpeg.Encode(&jpg, noisy(r, 420, 560), &jpeg.Options{Quality: 60})
	_ = png.Encode(&small, noisy(r, 120, 160))
	picture := "/Type /XObject /Subtype /Image /Width 30000 /Height 30000 /BitsPerComponent 8 /ColorSpace /DeviceGray /Filter /FlateDecode"
	files := [][]byte{
		[]byte("%PDF-1.7\n"), []byte("hello"), reportPDF()[:700],
		pdfWith(1, letter, "/Filter /FlateDecode", zeros(80<<20)),
		pdfWith(1, letter, "/Filter [/FlateDecode /FlateDecode]", zeros(80<<20)),
		pdfWith(1, letter, picture, zeros(80<<20)),
		pdfWith(1, letter, picture, zeros(60<<20)),
		pdfWith(400, letter, "", []byte("BT ET")),
		pdfWith(1_000_000, letter, "", nil)[:200_000],
		pdfWith(30, letter, "/Filter /FlateDecode", zeros(1<<20)),
		pdfWith(1, "[0 0 100000000 100000000]", "", []byte("0 0 m 9 9 l S")),
		pdfWith(1, letter, "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 4 0 R >> >>", []byte("/X Do /X Do")),
		pdfWith(1, letter, "", []byte(strings.Repeat("0 0 m 612 792 l S ", 400_000))),
		pdfWith(1, letter, "", []byte(strings.Repeat("BT /F1 9 Tf 1 0 0 1 9 9 Tm (1 2 3) Tj ET ", 100_000))),
		[]byte("%PDF-1.4\n1 0 obj << /Type /Pages /Count 2 /Kids [1 0 R 1 0 R] >> endobj\n2 0 obj << /Type /Catalog /Pages 1 0 R >> endobj\ntrailer << /Root 2 0 R >>"),
		[]byte("%PDF-1.4\n1 0 obj\n" + strings.Repeat("[", 200_000) + "\nendobj\ntrailer << /Root 1 0 R >>"),
		[]byte("%PDF-1.4\n1 0 obj << /Encrypt 2 0 R >> endobj trailer << /Root 1 0 R /Encrypt << /Filter /Standard /V 4 /R 4 /P -1 /O (x) /U (y) >> >>"),
		pngOf(40_000, 40_000, zeros(60<<20)), pngOf(12_000, 3_300, zeros(40<<20)), pngOf(5000, 5000, zeros(1<<20)), pngOf(1, 12_000, zeros(1<<20)),
		jpg.Bytes(), small.Bytes(), jpg.Bytes()[:jpg.Len()/3], append([]byte{0xff, 0xd8, 0xff}, bytes.Repeat([]byte{0xff}, 5000)...),
	}
	if n < len(files) {
		var some [][]byte
		for i := 0; i < len(files); i += 2 {
			some = append(some, files[i])
		}
		files = some
	}
	good := [][]byte{reportPDF(), reportPDF(), reportPDF(), small.Bytes()}
	for len(files) < n {
		data := bytes.Clone(good[len(files)%len(good)])
		for range 1 + r.IntN(30) {
			at := 5 + r.IntN(len(data)-5)
			switch r.IntN(3) {
			case 0:
				data[at] = byte(r.Uint32())
			case 1:
				end := min(len(data), at+r.IntN(80))
				data = append(data[:at], data[end:]...)
			case 2:
				end := min(len(data), at+r.IntN(80))
				data = append(data[:at], append(bytes.Clone(data[at:end]), data[at:]...)...)
			}
			if len(data) < 50 {
				break
			}
		}
		files = append(files, data)
	}
	return files[:n]
}

// fileOutcome is what became of a file.
type fileOutcome struct {
	refused string // the error_type of the answer
	status  string // the final one of its job
	reason  string
}

// throw uploads files one after the other and waits for the end of each, while another user
// sends requests.
func throw(p *program, user string, events <-chan jobEvent, files [][]byte, each func()) []fileOutcome {
	p.Helper()
	stop := make(chan struct{})
	var others sync.WaitGroup
	var answered atomic.Int64
	others.Go(func() {
		often := time.NewTicker(20 * time.Millisecond)
		defer often.Stop()
		for {
			select {
			case <-stop:
				return
			case <-often.C:
			}
			r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.url+"/v2/user/", nil)
			if err == nil {
				r.Header.Set("x-service-api-key", p.key)
				var answer *http.Response
				if answer, err = http.DefaultClient.Do(r); err == nil {
					_, err = io.Copy(io.Discard, answer.Body)
					err = errors.Join(err, answer.Body.Close())
					if answer.StatusCode != http.StatusOK {
						err = fmt.Errorf("status %d", answer.StatusCode)
					}
				}
			}
			if err != nil {
				p.Error("the service does not answer others:", err)
				return
			}
			answered.Add(1)
		}
	})
	var out []fileOutcome
	for i, data := range files {
		status, body := send(p, user, "report", data)
		var answer struct {
			ID     string
			Detail json.RawMessage
		}
		require.NoError(p, json.Unmarshal(body, &answer))
		if status != http.StatusOK {
			var refused struct {
				Type string `json:"error_type"`
			}
			require.Less(p, status, 500, "file %d", i)
			require.NoError(p, json.Unmarshal(answer.Detail, &refused))
			out = append(out, fileOutcome{refused: refused.Type})
			each()
			continue
		}
		for e := range events {
			if e.Data.ID == answer.ID && (e.Data.Status == "completed" || e.Data.Status == "failed") {
				f := fileOutcome{status: e.Data.Status}
				if e.Data.FailureReason != nil {
					f.reason = *e.Data.FailureReason
				}
				out = append(out, f)
				break
			}
		}
		each()
	}
	close(stop)
	others.Wait()
	require.Positive(p, answered.Load())
	return out
}

// jobEvent is an event about a parsing job.
type jobEvent struct {
	Type string `json:"event_type"`
	Data struct {
		ID            string
		Status        string
		FailureReason *string `json:"failure_reason"`
		Data          *struct {
			Results []struct {
				TestName string `json:"test_name"`
				Value    string
			}
		}
	}
}

// jobEvents is a receiver of events about parsing jobs, and its address. Only the final
// ones are kept if final is set.
func jobEvents(t testing.TB, final bool) (<-chan jobEvent, string) {
	t.Helper()
	events := make(chan jobEvent, 2000)
	return events, newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		var e jobEvent
		if json.NewDecoder(r.Body).Decode(&e) == nil && strings.HasPrefix(e.Type, "lab_report.") && (!final || e.Type == "lab_report.parsing_job.updated") {
			events <- e
		}
	})
}

// Every hostile file ends in a refusal, a reason or in results; nothing crashes, others
// are served meanwhile, and the next good report is read as if nothing was.
//
// The limit of memory is about what files can do to the server. What other tests left does not count,
// and neither does compiling the PDF engine, which takes 380 MB once on a machine: a good report comes
// before the files.
func TestLabReport_hostileFilesNeitherCrashNorBlock(t *testing.T) {
	events, receiver := jobEvents(t, true)
	p := start(t, "-webhook-url", receiver)
	send(p, oneUser(p), "report.pdf", reportPDF())
	require.Equal(t, "completed", (<-events).Data.Status)
	p.quit()
	peak, longest := watchTree(t), time.Duration(0)
	outcomes := map[string]int{}
	// A sandbox takes 300 jobs.
	for files := range slices.Chunk(hostileFiles(prove.Counts(16, 40, 500)), 200) {
		p := start(t, "-webhook-url", receiver)
		user := oneUser(p)
		began := time.Now()
		for i, f := range throw(p, user, events, files, func() {
			longest = max(longest, time.Since(began))
			began = time.Now()
		}) {
			outcomes[f.refused+f.status+" "+f.reason]++
			switch {
			case f.refused != "":
				require.Contains(t, []string{"UNREADABLE_PDF", "TOO_MANY_PAGES", "UNSUPPORTED_FILE_TYPE", "UNDECODABLE_IMAGE", "EMPTY_FILE"}, f.refused, "file %d", i)
			case f.status == "failed":
				require.Contains(t, []string{"invalid_input", "low_quality", "processing_error", "too_many_pages", "not_english"}, f.reason, "file %d", i)
			default:
				require.Equal(t, "completed", f.status, "file %d", i)
			}
		}
		_, body := send(p, user, "report.pdf", reportPDF())
		e := <-events
		require.Contains(t, string(body), e.Data.ID)
		require.Equal(t, "completed", e.Data.Status)
		require.Len(t, e.Data.Data.Results, 4)
		p.quit()
	}
	most := peak()
	// How fast a machine is decides nothing here.
	t.Logf("most memory of the processes together: %d MB; the longest file took %s; %v", most/1e6, longest.Round(time.Millisecond), outcomes)
	if !prove.Race {
		require.Less(t, most, int64(512e6))
	}
}

// watchTree notes the most memory that this process and all below it have together, until the
// function that it returns is called. Processes that run before, and garbage, do not count.
func watchTree(t *testing.T) (peak func() int64) {
	debug.FreeOSMemory()
	others := processTree(os.Getpid(), nil)[1:]
	stop, ended := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		most := int64(0)
		for {
			select {
			case <-stop:
				ended <- most
				return
			case <-tick.C:
				// The sum of RSS is cheap to read, and never less than that of PSS.
				if tree := processTree(os.Getpid(), others); sum(tree, residentBytes) > most {
					most = max(most, sum(tree, proportionalBytes))
				}
			}
		}
	}()
	return func() int64 { close(stop); return <-ended }
}

// processTree returns a process and all below it but others and what is below them, where the system
// tells in /proc.
func processTree(pid int, others []int) []int {
	tree := []int{pid}
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err == nil && !slices.Contains(others, n) {
				tree = append(tree, processTree(n, others)...)
			}
		}
	}
	return tree
}

func sum(tree []int, bytes func(pid int) int64) (all int64) {
	for _, pid := range tree {
		all += bytes(pid)
	}
	return all
}

// proportionalBytes returns what a process has in memory, each page that several share counted
// by parts (PSS), where the system tells; else 0.
func proportionalBytes(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
