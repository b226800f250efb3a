package postgres

import (
	"bytes"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

func checkRecords(records []healthdata.Record) error {
	var p healthlab.Problems
	seen := make(map[uuid.UUID]bool, len(records))
	for i := range records {
		r := &records[i]
		if r.Resource == "" || r.Resource != records[0].Resource {
			p.Add("resource", "one resource for all", i, "resource")
		}
		if r.ID == uuid.Nil || seen[r.ID] {
			p.Add("id", "an id stands once", i, "id")
		}
		seen[r.ID] = true
		if len(r.Doc) == 0 {
			p.Add("missing", "a record has a document", i, "doc")
		}
		if !goodText(r.Resource) || !goodText(r.Provider) || !goodText(string(r.SourceType)) ||
			bytes.IndexByte(r.Doc, 0) >= 0 || bytes.IndexByte(r.Raw, 0) >= 0 {
			p.Add("text", "text is UTF-8 without NUL", i)
		}
	}
	return p.Err()
}

func checkBatches(batches []healthdata.SampleBatch) error {
	var p healthlab.Problems
	seen := map[healthdata.SeriesKey]bool{}
	for i := range batches {
		b := &batches[i]
		if len(batches) > 1 {
			if seen[b.Key] {
				p.Add("key", "a series stands once", i, "key")
			}
			seen[b.Key] = true
		}
		if !goodKey(&b.Key) {
			p.Add("text", "text is UTF-8 without NUL", i, "key")
		}
		switch {
		case b.Samples == nil || b.Samples.Len() == 0:
			p.Add("missing", "a batch has samples", i, "samples")
		case b.Samples.Validate() != nil:
			p.Add("samples", "samples ascend by time and are whole", i, "samples")
		case slices.ContainsFunc(b.Samples.Runs, badRun):
			p.Add("text", "text is UTF-8 without NUL", i, "samples")
		}
	}
	return p.Err()
}

func goodKey(k *healthdata.SeriesKey) bool {
	return goodText(k.Resource) && goodText(k.Provider) && goodText(string(k.SourceType)) && goodText(k.Part)
}

// badRun reports whether a text of a run is one that SQL could not show.
func badRun(r series.Run) bool {
	a := &r.Attrs
	for _, s := range [...]*string{
		&a.Type, &a.Unit, &a.App, &a.Sport, &a.Location, &a.Intensity,
		&a.DeliveryMode, &a.DeliveryForm, &a.BolusPurpose, &a.Text, &a.Tags,
	} {
		if !goodText(*s) {
			return true
		}
	}
	return false
}
