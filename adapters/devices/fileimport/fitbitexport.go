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
	name     string // a pattern
	resource string
	// length is of the interval of a value; 0 for an instant.
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
	if !bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("[")) {
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
	var v struct {
		BPM *float64 `json:"bpm"`
	}
	err := json.Unmarshal(value, &v)
	if err == nil && v.BPM == nil {
		return 0, errors.New("no bpm")
	}
	if err != nil {
		return 0, err
	}
	return *v.BPM, nil
}

// fitbitCount reads a number in a JSON string.
func fitbitCount(value json.RawMessage) (float64, error) {
	var v string
	if err := json.Unmarshal(value, &v); err != nil {
		return 0, err
	}
	n, ok := healthlab.ParseNumber(v)
	if !ok {
		return 0, errors.New("text that is no number")
	}
	return n, nil
}

// fitbitTime is how a time is written: 04/09/26 07:12:33.
const fitbitTime = "01/02/06 15:04:05"

// importFitbit streams the values of a file to the sink.
func importFitbit(out *output, f *fitbitFile, r io.Reader) error {
	limit := &rowLimit{r: r, left: mostRowBytes}
	list := json.NewDecoder(limit)
	b, remarks := newBatch(out, out.recordedBy(healthdata.SourceWatch)), remarks{out: out}
	broken := func(err error) error {
		if err := b.flush(); err != nil {
			return err
		}
		var ofFile *FileError
		if errors.As(err, &ofFile) {
			return err
		}
		if err != nil && !errors.As(err, new(*json.SyntaxError)) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errLongRow) {
			return fmt.Errorf("read file: %w", err)
		}
		return &FileError{Format: FitbitExport, Offset: list.InputOffset(), Msg: "the file must be a JSON list of values, and no value may be too long"}
	}
	if t, err := list.Token(); err != nil || t != json.Delim('[') {
		return broken(err)
	}
	for n := 1; list.More(); n++ {
		limit.left = mostRowBytes
		var v struct {
			Time  string          `json:"dateTime"`
			Value json.RawMessage `json:"value"`
		}
		if err := list.Decode(&v); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
			return broken(err)
		}
		place := fmt.Sprintf("value %d", n)
		at, err := time.Parse(fitbitTime, v.Time)
		if err != nil {
			remarks.add(place, "dateTime", "a time such as 04/09/26 07:12:33")
			continue
		}
		number, err := f.number(v.Value)
		if err != nil || number < f.least || number > f.most {
			remarks.add(place, "value", "a number from "+shortNumber(f.least)+" to "+shortNumber(f.most))
			continue
		}
		s := healthdata.Sample{Timestamp: healthlab.At(at), Value: healthdata.Number(number)} // where the person was is not said
		if f.length > 0 {
			end := healthlab.At(at.Add(f.length))
			s.Start, s.End = &s.Timestamp, &end
		}
		if err := b.sample(f.resource, s); err != nil {
			return err
		}
	}
	if t, err := list.Token(); err != nil || t != json.Delim(']') {
		return broken(err)
	}
	return b.flush()
}
