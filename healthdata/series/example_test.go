package series_test

import (
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// A watch sends a morning of heart rate, sends part of it again with one value
// corrected. The example computes the mean of each hour by the wearer's clock.
func Example() {
	seven := time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC)
	berlin := series.Attrs{Offset: 3600}
	beat := func(minute int, bpm float64) series.Sample {
		return series.Sample{Time: seven.Add(time.Duration(minute) * time.Minute).UnixMicro(), Value: bpm, Attrs: berlin}
	}

	// The first two hours arrive. The store has nothing yet.
	var morning series.Builder
	for m := range 120 {
		morning.Add(beat(m, 60+float64(m/60)*20))
	}
	change, _ := series.Apply(nil, nil, morning.Block(), series.PerMinute)
	body := change.Put
	fmt.Println("stored:", change.Outcome.New, "new samples in", len(body), "chunk of", body[0].Size, "bytes")

	// The watch sends three of them again, and one of them has changed. A small batch
	// goes to the log of the series; the body stays as it is.
	var again series.Builder
	again.Add(beat(1, 60))
	again.Add(beat(2, 66))
	again.Add(beat(3, 60))
	segment, _ := series.NewChunk(again.Block())
	log := []series.Segment{segment}

	// A scanner reads body and log as one.
	eight := seven.Add(time.Hour).UnixMicro() // 08:00 on the wearer's clock
	hour := time.Hour.Microseconds()
	hours, _ := series.NewReducer(series.Reduction{Edges: []int64{eight, eight + hour, eight + 2*hour}, Local: true})
	var scan series.Scanner
	for block, err := range scan.Blocks(body, log, series.Range{From: series.MinTime, To: series.MaxTime + 1}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		hours.Block(block)
	}
	for i, h := range hours.Buckets() {
		fmt.Printf("%02d:00 %d samples, mean %.1f, highest %.0f\n", 8+i, h.N, h.Mean(), h.Max)
	}

	// Later the log is merged into the body with new samples, and the same again would change nothing.
	change, _ = series.Apply(body, log, again.Block(), series.PerMinute)
	same, _ := series.Apply(change.Put, nil, again.Block(), series.PerMinute)
	fmt.Println("sent again:", same.Outcome.Same, "same,", len(same.Put), "chunks to write")
	// Output:
	// stored: 120 new samples in 1 chunk of 161 bytes
	// 08:00 60 samples, mean 60.1, highest 66
	// 09:00 60 samples, mean 80.0, highest 80
	// sent again: 3 same, 0 chunks to write
}

// A page of samples, and where the next page begins.
func ExampleScanner_Read() {
	var b series.Builder
	for i := range int64(5) {
		b.Add(series.Sample{Time: i * 1_000_000, Value: float64(60 + i)})
	}
	chunk, _ := series.NewChunk(b.Block())

	var reader series.Scanner
	r := series.Range{From: 0, To: 10_000_000}
	for r.From < r.To {
		var page series.Block
		next, err := reader.Read(&page, []series.Chunk{chunk}, nil, r, 2)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(page.Value)
		r.From = next
	}
	// Output:
	// [60 61]
	// [62 63]
	// [64]
}
