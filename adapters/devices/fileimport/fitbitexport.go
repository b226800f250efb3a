package fileimport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// fitbitFile is a JSON file of a Fitbit export: a list of values with times in UTC. The file name says what is
// measured.
type fitbitFile struct {
	name     string // pattern that the file name must match
	resource string
	// length is the length of the interval that a value covers; 0 for an instant.
	length      time.Duration
	least, most float64
	// number reads the number of a value.
	number func(value json.RawMessage) (float64, error)
}

var fitbitFiles = []*fitbitFile{
	{name: "heart_rate-????-??-??.json", resource: "heartrate", least: 20, most: 300, number: fitbitRate},
	{name: "steps-????-??-??.json", resource: "steps", length: time.Minute, least: 0, most: 1000, number: fitbitCount},
}

// fitbitFileOf returns the fitbitFile for a file name and first bytes; nil if it is unknown.
func fitbitFileOf(head []byte, name string) *fitbitFile {
	if !bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(head, utf8BOM), blank), []byte("[")) {
		return nil
	}
	for _, f := range fitbitFiles {
		if matchesName(f.name, name) {
			return f
		}
	}
	return nil
}

func fitbitRate(value json.RawMessage) (float64, error) {
	v := itemOf[struct {
		BPM *float64 `json:"bpm"`
	}](value)
	if v == nil || v.BPM == nil {
		return 0, errors.New("must have a member bpm")
	}
	return *v.BPM, nil
}

// fitbitCount reads a number that may be in a JSON string.
func fitbitCount(value json.RawMessage) (float64, error) {
	var v string
	if err := json.Unmarshal(value, &v); err != nil {
		v = string(value)
	}
	n, ok := healthlab.ParseNumber(v)
	if !ok {
		return 0, errors.New("must be a number")
	}
	return n, nil
}

// fitbitTime is the layout of times, such as 04/09/26 07:12:33.
const fitbitTime = "01/02/06 15:04:05"

// fitbitInstant reads a time in UTC.
func fitbitInstant(text string) (time.Time, bool) {
	if at, err := time.Parse(fitbitTime, text); err == nil {
		return at, true
	}
	at, _, ok := readTime(text)
	return at, ok
}

// importFitbit streams the values of a file to the sink.
func importFitbit(out *output, f *fitbitFile, r io.Reader) error {
	list := newJSONFile(out, FitbitExport, r)
	b, remarks := newBatch(out, out.recordedBy(healthdata.SourceWatch)), remarks{out: out}
	err := list.list(func(n int) error {
		list.limit.allow(mostRowBytes)
		var raw json.RawMessage
		if err := list.value(&raw); err != nil {
			return err
		}
		place := fmt.Sprintf("value %d", n)
		v := itemOf[struct {
			Time  string          `json:"dateTime"`
			Value json.RawMessage `json:"value"`
		}](raw)
		if v == nil {
			remarks.add(place, "value", "an object with dateTime and value")
			return nil
		}
		at, ok := fitbitInstant(v.Time)
		if !ok || !out.inTime(at.UnixMicro()) {
			remarks.add(place, "dateTime", "a time such as 04/09/26 07:12:33, from 1990 to a day ahead")
			return nil
		}
		number, err := f.number(v.Value)
		if valid := err == nil && number >= f.least && number <= f.most; !valid {
			remarks.add(place, "value", "a number from "+shortNumber(f.least)+" to "+shortNumber(f.most))
			return nil
		}
		s := healthdata.Sample{Timestamp: healthlab.At(at), Value: healthdata.Number(number)} // the file has no UTC offset
		if f.length > 0 {
			end := healthlab.At(at.Add(f.length))
			s.Start, s.End = &s.Timestamp, &end
		}
		return b.sample(f.resource, s)
	})
	if err := list.result(err); err != nil {
		return err
	}
	return b.flush()
}
