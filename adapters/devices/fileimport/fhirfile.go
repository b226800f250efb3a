package fileimport

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

var fhirTypeName = regexp.MustCompile(`^[A-Z][A-Za-z]{2,39}$`)

var fhirType = regexp.MustCompile(`"resourceType"\s*:\s*"[A-Z][A-Za-z]*"`)

func fhirHead(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, utf8BOM), blank)
	// The type is searched in all of head, because the first line of NDJSON may be broken.
	return (bytes.HasPrefix(head, []byte("{")) || bytes.Contains(head, []byte("\n{"))) && fhirType.Match(head)
}

// fhirLines reports whether a file that begins with head has a resource in each line (NDJSON).
func fhirLines(head []byte) bool {
	head = bytes.TrimPrefix(head, utf8BOM)
	dec := json.NewDecoder(bytes.NewReader(head))
	var first json.RawMessage
	if dec.Decode(&first) == nil {
		behind := bytes.TrimLeft(head[dec.InputOffset():], " \t\r")
		return !bytes.Contains(first, []byte("\n")) && bytes.HasPrefix(behind, []byte("\n")) && len(bytes.TrimSpace(behind)) > 0
	}
	for line := range bytes.Lines(head) {
		if h := itemOf[fhirResource](line); h != nil && h.ResourceType != "" {
			return true
		}
	}
	return false
}

// fhirResource holds the fields that resources of all types have, and those that the first pass needs of Observations.
type fhirResource struct {
	ResourceType string
	ID           string
	Status       string
	Subject      *fhirReference
	Contained    []json.RawMessage
	Meta         struct{ LastUpdated, VersionID, Source string }

	number int // number of the Observation in the file, from 1
}

type fhirReference struct {
	Reference  string
	Identifier *struct{ System, Value string }
	Display    string
	Type       string
}

// fhirReader reads the resources of a file.
type fhirReader struct {
	out   *output
	lines bool
	visit func(place string, head *fhirResource, raw json.RawMessage) error
	count int // number of observations read
}

// mostObservations is the largest number of observations of a file.
const mostObservations = 1_000_000

// importFHIR reads a file twice, because the subject and the latest version of each Observation must be known before
// the first one is stored.
func importFHIR(out *output, r io.Reader, head []byte) error {
	at, size, done, err := randomAccess(r, head, FHIR, out.opts)
	if err != nil {
		return err
	}
	defer done()
	lines := fhirLines(head)
	first := fhirReader{out: &output{ctx: out.ctx, rep: &Report{}, opts: out.opts}, lines: lines}
	known := fhirSurvey{subjects: *out.opts.subjects, versions: map[string]fhirVersion{}}
	first.visit = known.addObservation
	if err := first.read(io.NewSectionReader(at, 0, size)); err != nil {
		return err
	}
	if first.count == 0 {
		return &FileError{Format: FHIR, Msg: "the file has no Observation; it must be an Observation, a Bundle of Observations, or NDJSON of Observations"}
	}
	*out.opts.subjects = known.subjects
	opts := *out.opts
	opts.Provider = cmp.Or(opts.Provider, healthdata.SlugManual)
	out.opts = &opts
	f := newFHIRImport(out, &known)
	second := fhirReader{out: out, lines: lines, visit: f.importObservation}
	if err := second.read(&ctxReader{ctx: out.ctx, r: io.NewSectionReader(at, 0, size), span: opts.span}); err != nil {
		return err
	}
	return f.finish()
}

// read calls visit for every Observation, in the order of the file.
func (f *fhirReader) read(r io.Reader) error {
	text := bufio.NewReaderSize(r, detectBytes)
	if mark, _ := text.Peek(len(utf8BOM)); bytes.Equal(mark, utf8BOM) {
		_, _ = text.Discard(len(utf8BOM))
	}
	if f.lines {
		return f.readLines(text)
	}
	j := newJSONFile(f.out, FHIR, text)
	for n := 1; ; n++ {
		j.limit.allow(int(f.out.opts.MaxRecordingBytes))
		t, err := j.dec.Token()
		if errors.Is(err, io.EOF) && n > 1 {
			return nil
		}
		if err == nil {
			err = f.document(j, t)
		}
		if err != nil {
			return j.result(err)
		}
	}
}

// document reads a resource that begins with t. It reads the entries of a Bundle one by one.
func (f *fhirReader) document(j *jsonFile, t json.Token) error {
	if t != json.Delim('{') {
		f.out.countSkipped("value that is no resource", 1)
		return j.skipRest(t)
	}
	fields, size, bundle := map[string]json.RawMessage{}, int64(0), false
	for j.dec.More() {
		j.limit.allow(int(f.out.opts.MaxRecordingBytes))
		key, err := j.dec.Token()
		if err != nil {
			return err
		}
		if key == "entry" {
			bundle = true
			if err := j.list(func(n int) error { return f.nextEntry(j, n) }); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := j.value(&value); err != nil {
			return err
		}
		if size += int64(len(value)); size > f.out.opts.MaxRecordingBytes {
			return longValueError(f.out.opts.MaxRecordingBytes)
		}
		if name, ok := key.(string); ok {
			fields[name] = value
		}
	}
	if _, err := j.dec.Token(); err != nil || bundle {
		return err
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return f.resource("resource", raw)
}

func (f *fhirReader) nextEntry(j *jsonFile, n int) error {
	var raw json.RawMessage
	if err := j.value(&raw); err != nil {
		return err
	}
	return f.entry("entry "+strconv.Itoa(n), raw)
}

func (f *fhirReader) entry(place string, raw json.RawMessage) error {
	e := itemOf[struct{ Resource json.RawMessage }](raw)
	if e == nil || len(e.Resource) == 0 || string(e.Resource) == "null" {
		f.out.skipAt(place, "entry without a resource")
		return nil
	}
	return f.resource(place, e.Resource)
}

// resource calls visit for an Observation or for the Observations of a Bundle, and counts other resources by type.
// place is the position of the resource in the file, as a text for notes.
func (f *fhirReader) resource(place string, raw json.RawMessage) error {
	head := itemOf[fhirResource](raw)
	if head == nil || head.ResourceType == "" {
		f.out.skipAt(place, "resource that does not have the form of FHIR R4")
		return nil
	}
	switch head.ResourceType {
	case "Observation":
		if f.count++; f.count > mostObservations {
			return &FileError{Format: FHIR, Msg: fmt.Sprintf("the file must have at most %d Observations; split it", mostObservations)}
		}
		head.number = f.count
		return f.visit(place, head, raw)
	case "Bundle":
		b := itemOf[struct{ Entry []json.RawMessage }](raw)
		if b == nil {
			f.out.skipAt(place, "resource that does not have the form of FHIR R4")
			return nil
		}
		for i, e := range b.Entry {
			if err := f.entry(fmt.Sprintf("%s, entry %d", place, i+1), e); err != nil {
				return err
			}
		}
		return nil
	}
	if !fhirTypeName.MatchString(head.ResourceType) {
		f.out.skip("resource of a type that is none of FHIR R4")
		return nil
	}
	f.out.skip(head.ResourceType)
	return nil
}

// readLines reads a file with one resource per line. It leaves out a line that cannot be read.
func (f *fhirReader) readLines(text *bufio.Reader) error {
	for n := 1; ; n++ {
		if err := f.out.ctx.Err(); err != nil {
			return err
		}
		line, long, err := readLine(text, int(f.out.opts.MaxRecordingBytes))
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("read file: %w", err)
		}
		place := "line " + strconv.Itoa(n)
		switch {
		case long:
			f.out.skipAt(place, f.out.opts.named(fmt.Sprintf("line of more than %d bytes", f.out.opts.MaxRecordingBytes), "MaxRecordingBytes"))
		case len(bytes.TrimSpace(line)) == 0:
		case !json.Valid(line):
			f.out.skipAt(place, "line that is not JSON")
		default:
			if err := f.resource(place, line); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// readLine reads a line of at most most bytes. long reports that the line was longer; then its bytes are dropped.
func readLine(r *bufio.Reader, most int) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > most; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// fhirSurvey is the result of the first pass.
type fhirSurvey struct {
	subjects fhirSubjects
	versions map[string]fhirVersion // key: id of the Observation
}

// fhirVersion identifies the latest version of an Observation in a file.
type fhirVersion struct {
	updated time.Time
	version int
	number  int
}

// addObservation notes an Observation. Observations of a second person are an error.
func (s *fhirSurvey) addObservation(_ string, head *fhirResource, _ json.RawMessage) error {
	if !s.subjects.add(head) {
		return &FileError{Format: FHIR, Msg: "the Observations of the file have more than one subject; a file must be of one person: split it by Observation.subject"}
	}
	if head.ID == "" {
		return nil
	}
	v := fhirVersion{number: head.number}
	if at, err := healthlab.ParseTime(head.Meta.LastUpdated); err == nil {
		v.updated = at.Time
	}
	v.version, _ = strconv.Atoi(head.Meta.VersionID)
	if was, ok := s.versions[head.ID]; !ok || cmp.Or(was.updated.Compare(v.updated), cmp.Compare(was.version, v.version)) <= 0 {
		s.versions[head.ID] = v
	}
	return nil
}

func (s *fhirSurvey) replaced(head *fhirResource) bool {
	return head.ID != "" && s.versions[head.ID].number != head.number
}

// fhirSubjects records the person of an import's Observations, once for each way in which Observations can name a
// person.
type fhirSubjects struct{ reference, contained, identifier, display string }

// add records the subject of an Observation. It returns false if the subject differs from an earlier one.
func (s *fhirSubjects) add(head *fhirResource) bool {
	is := head.Subject
	switch {
	case is == nil || !head.ofPatient():
		return true
	case strings.HasPrefix(is.Reference, "#"):
		return setOrEqual(&s.contained, is.Reference[1:]+" "+head.containedAs(is.Reference[1:]))
	case is.Reference != "":
		ref, _, _ := strings.Cut(is.Reference, "/_history/")
		switch was := s.reference; {
		case was != "" && strings.HasSuffix(was, "/"+ref): // one is relative to the base of the other
			return true
		case was == "" || strings.HasSuffix(ref, "/"+was):
			s.reference = ref
			return true
		default:
			return was == ref
		}
	case is.Identifier != nil && is.Identifier.Value != "":
		return setOrEqual(&s.identifier, is.Identifier.System+"|"+is.Identifier.Value)
	}
	return is.Display == "" || setOrEqual(&s.display, healthlab.FoldText(is.Display))
}

func setOrEqual(was *string, is string) bool {
	if *was == "" {
		*was = is
	}
	return *was == is
}

// containedAs returns the JSON of the contained resource with an id; empty if there is none.
func (r *fhirResource) containedAs(id string) string {
	for _, raw := range r.Contained {
		if c := itemOf[fhirResource](raw); c != nil && c.ID == id {
			return string(raw)
		}
	}
	return ""
}

// otherSubjects matches resource types that are not a person.
var otherSubjects = regexp.MustCompile(`(^|/)(Group|Device|Location)/[^/]*$`)

// ofPatient reports whether the subject of an Observation may be a person.
func (r *fhirResource) ofPatient() bool {
	if r.Subject == nil {
		return true
	}
	ref, _, _ := strings.Cut(r.Subject.Reference, "/_history/")
	return !otherSubjects.MatchString(ref) && !otherSubjects.MatchString(r.Subject.Type+"/")
}
