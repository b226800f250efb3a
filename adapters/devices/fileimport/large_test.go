package fileimport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// writeExport writes an export of at least size bytes, as a phone does: years of heart
// rate with its remarks, steps, energy and sleep, one kind after another. It returns
// how many records of each resource it holds.
func writeExport(w io.Writer, size int64) (map[string]int, error) {
	const device = `device="&lt;&lt;HKDevice: 0x%x&gt;, name:Watch, manufacturer:Apple Inc., model:Watch, hardware:Watch6,1, software:8.%d&gt;"`
	at := time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC)
	stamp := func(t time.Time) string { return t.Format("2006-01-02 15:04:05 -0700") }
	counts := map[string]int{}
	n := int64(0)
	var failed error
	write := func(b []byte) {
		m, err := w.Write(b)
		n += int64(m)
		failed = errors.Join(failed, err)
	}
	// A block of records is written again and again: what they say is beside the point.
	const block = 2000
	repeat := func(resource string, until int64, record func(b []byte, i int) []byte) {
		var b []byte
		for i := range block {
			b = record(b, i)
		}
		for failed == nil && n < until {
			write(b)
			counts[resource] += block
		}
	}
	write([]byte("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE HealthData [\n<!ELEMENT HealthData (Record*)>\n]>\n<HealthData locale=\"en_US\">\n"))
	repeat("heartrate", size*5/10, func(b []byte, i int) []byte {
		t := at.Add(time.Duration(i) * 97 * time.Second)
		return fmt.Appendf(b, " <Record type=\"HKQuantityTypeIdentifierHeartRate\" sourceName=\"Kim’s Watch\" sourceVersion=\"8.1\" "+device+
			" unit=\"count/min\" creationDate=\"%s\" startDate=\"%s\" endDate=\"%s\" value=\"%d\">\n  <MetadataEntry key=\"HKMetadataKeyHeartRateMotionContext\" value=\"0\"/>\n </Record>\n",
			0x280000000+i*64, i%10, stamp(t.Add(time.Minute)), stamp(t), stamp(t), 50+i%100)
	})
	repeat("steps", size*75/100, func(b []byte, i int) []byte {
		t := at.Add(time.Duration(i) * 10 * time.Minute)
		return fmt.Appendf(b, " <Record type=\"HKQuantityTypeIdentifierStepCount\" sourceName=\"Phone\" sourceVersion=\"14.%d\" unit=\"count\" creationDate=\"%s\" startDate=\"%s\" endDate=\"%s\" value=\"%d\"/>\n",
			i%9, stamp(t.Add(time.Minute)), stamp(t), stamp(t.Add(9*time.Minute)), i%700)
	})
	repeat("calories_active", size*98/100, func(b []byte, i int) []byte {
		t := at.Add(time.Duration(i) * time.Minute)
		return fmt.Appendf(b, " <Record type=\"HKQuantityTypeIdentifierActiveEnergyBurned\" sourceName=\"Kim’s Watch\" sourceVersion=\"8.1\" "+device+
			" unit=\"kcal\" creationDate=\"%s\" startDate=\"%s\" endDate=\"%s\" value=\"0.%03d\"/>\n",
			0x280000000+i*64, i%10, stamp(t.Add(time.Minute)), stamp(t), stamp(t.Add(time.Minute)), i%1000)
	})
	for night := 0; failed == nil && n < size; night++ {
		var b []byte
		for i := range 12 {
			t := at.Add(time.Duration(night)*24*time.Hour + time.Duration(i)*30*time.Minute)
			b = fmt.Appendf(b, " <Record type=\"HKCategoryTypeIdentifierSleepAnalysis\" sourceName=\"Kim’s Watch\" startDate=\"%s\" endDate=\"%s\" value=\"HKCategoryValueSleepAnalysisAsleep%s\"/>\n",
				stamp(t), stamp(t.Add(30*time.Minute)), []string{"Core", "Deep", "REM"}[i%3])
		}
		write(b)
		counts["sleep"]++
	}
	write([]byte("</HealthData>\n"))
	return counts, failed
}

// watching counts, and looks at the memory in use each time it is called.
type watching struct {
	samples map[string]int
	sleep   int
	most    uint64
}

func (w *watching) look() { w.most = max(w.most, inUse()) }

func inUse() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

func allocated() uint64 {
	// Unlike the memory in use, this does not depend on when the collector runs.
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func (w *watching) Summaries(_ context.Context, resource string, _ healthdata.Source, items []healthdata.Summary) error {
	if resource == "sleep" {
		w.sleep += len(items)
	}
	w.look()
	return nil
}

func (w *watching) Samples(_ context.Context, resource string, _ healthdata.Source, samples []healthdata.Sample) error {
	w.samples[resource] += len(samples)
	w.look()
	return nil
}

func (w *watching) Stream(context.Context, *healthdata.Workout, healthdata.WorkoutStream) error {
	return nil
}

// A large export is imported whole, in memory that does not grow with it.
func TestHealthExport_largeFileTakesBoundedMemory(t *testing.T) {
	const limit = 200 << 20
	size := int64(prove.Count(100, 1024)) << 20
	name := filepath.Join(t.TempDir(), "export.xml")
	f, err := os.Create(name)
	require.NoError(t, err)
	counts, err := writeExport(f, size)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	debug.FreeOSMemory()
	before := inUse()
	w := &watching{samples: map[string]int{}}
	began := time.Now()
	_, err = fileimport.ImportFile(t.Context(), name, w, nil)
	took := time.Since(began)
	require.NoError(t, err)
	require.Equal(t, counts["sleep"], w.sleep)
	delete(counts, "sleep")
	require.Equal(t, counts, w.samples)
	require.Less(t, w.most, uint64(limit))
	t.Logf("%d MB in %.1f s (%.0f MB/s); at most %d MB in use, %d MB before",
		size>>20, took.Seconds(), float64(size>>20)/took.Seconds(), w.most>>20, before>>20)
}

// One that is cut off near its end imports what stands before.
func TestHealthExport_largeTruncatedFileIsImportedUpToTheCut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "export.xml")
	f, err := os.Create(name)
	require.NoError(t, err)
	counts, err := writeExport(f, 2<<20)
	require.NoError(t, err)
	size, err := f.Seek(0, io.SeekCurrent)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size-20))
	require.NoError(t, f.Close())
	var s recordingSink
	rep, err := fileimport.ImportFile(t.Context(), name, &s, nil)
	require.NoError(t, err)
	require.Contains(t, rep.String(), "the end of the file: it ends before its elements do")
	for resource, n := range rep.Samples {
		require.InDelta(t, counts[resource], n, 1, resource)
	}
}

func BenchmarkExport(b *testing.B) {
	name := filepath.Join(b.TempDir(), "export.xml")
	f, err := os.Create(name)
	require.NoError(b, err)
	_, err = writeExport(f, 20<<20)
	require.NoError(b, err)
	require.NoError(b, f.Close())
	info, err := os.Stat(name)
	require.NoError(b, err)
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fileimport.ImportFile(b.Context(), name, nowhere{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
