package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// uploadSamples and uploadBatch are the first sync of a phone, and how much of it goes into
// one request: 12 MB, below the limit of 16 MiB.
const (
	uploadSamples = 1_000_000
	uploadBatch   = 100_000
)

// The first sync of a phone with a million samples, over HTTP into PostgreSQL: the CPU time
// of this process, client and server, and the most memory that it had. The bar is 2 s and
// 150 MB. Reference: encoding/json decodes the same bytes into the plainest struct, and
// nothing else happens.
func BenchmarkFirstSync(b *testing.B) {
	files := uploadFiles(b)
	b.Run("healthlab", func(b *testing.B) {
		pool := pgtest.Connect(b, pgtest.Empty(b))
		store := rowsOf(b, pool)
		providers, err := readProviders("")
		require.NoError(b, err)
		health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
		require.NoError(b, err)
		team := teamOf("bench")
		server := httptest.NewServer(httpapi.Handler(httpapi.Config{
			Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil },
			Parts:        (&httpapi.Services{Health: health}).Parts(),
		}))
		defer server.Close()
		n := 0
		var worst uint64
		var cpu time.Duration
		for b.Loop() {
			b.StopTimer()
			n++
			u, err := health.CreateUser(b.Context(), team, healthdata.NewUser{ClientUserID: strconv.Itoa(n)})
			require.NoError(b, err)
			_, err = health.Connections().Connect(b.Context(), team, u.ID, healthdata.NewConnection{Provider: "apple_health_kit"})
			require.NoError(b, err)
			most := watchMemory(b)
			before := cpuTime(b)
			b.StartTimer()
			for _, file := range files {
				sendFile(b, server, "/v2/timeseries/"+u.ID.String()+"/heartrate", file)
			}
			b.StopTimer()
			cpu += cpuTime(b) - before
			worst = max(worst, most())
			b.StartTimer()
		}
		b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/op")
		b.ReportMetric(float64(worst)/1e6, "peak-MB")
	})
	b.Run("encoding_json", func(b *testing.B) {
		var cpu time.Duration
		for b.Loop() {
			before := cpuTime(b)
			for _, file := range files {
				data, err := os.ReadFile(file)
				require.NoError(b, err)
				var body struct {
					Data []struct {
						Timestamp time.Time `json:"timestamp"`
						Offset    int       `json:"timezone_offset"`
						Unit      string    `json:"unit"`
						Value     float64   `json:"value"`
					} `json:"data"`
				}
				require.NoError(b, json.Unmarshal(data, &body))
				require.Len(b, body.Data, uploadBatch)
			}
			cpu += cpuTime(b) - before
		}
		b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/op")
	})
}

// uploadFiles writes the bodies of a first sync.
func uploadFiles(b *testing.B) (files []string) {
	at := time.Now().UTC().Truncate(time.Second).Add(-uploadSamples * 5 * time.Second)
	for from := 0; from < uploadSamples; from += uploadBatch {
		var body bytes.Buffer
		body.WriteString(`{"provider":"apple_health_kit","stage":"historical","source":{"type":"watch"},"data":[`)
		for i := from; i < from+uploadBatch; i++ {
			if i > from {
				body.WriteByte(',')
			}
			fmt.Fprintf(&body, `{"timestamp":"%s","timezone_offset":-18000,"unit":"bpm","value":%d}`,
				at.Add(time.Duration(i)*5*time.Second).Format("2006-01-02T15:04:05+00:00"), 60+(i/60)*7919%40+i*31%5)
		}
		body.WriteString(`]}`)
		file := filepath.Join(b.TempDir(), strconv.Itoa(from)+".json")
		require.NoError(b, os.WriteFile(file, body.Bytes(), 0o600))
		files = append(files, file)
	}
	return files
}

func sendFile(b *testing.B, server *httptest.Server, path, file string) {
	f, err := os.Open(file)
	require.NoError(b, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(b, err)
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+path, f)
	require.NoError(b, err)
	r.ContentLength = info.Size()
	r.Header.Set("Content-Type", "application/json")
	reply, err := server.Client().Do(r)
	require.NoError(b, err)
	defer reply.Body.Close()
	answer, err := io.ReadAll(reply.Body)
	require.NoError(b, err)
	require.JSONEq(b, fmt.Sprintf(`{"new":%d,"changed":0,"same":0,"dropped":0}`, uploadBatch), string(answer))
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watchMemory notes, every few milliseconds, how much memory the process has from the system; the
// function it returns ends that and says the most.
func watchMemory(b *testing.B) func() uint64 {
	runtime.GC()
	debug.FreeOSMemory()
	var most atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(3 * time.Millisecond)
		defer tick.Stop()
		read := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			metrics.Read(read)
			most.Store(max(most.Load(), read[0].Value.Uint64()-read[1].Value.Uint64()))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return most.Load()
	}
}
