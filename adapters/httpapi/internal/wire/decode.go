package wire

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Options configures [Decode]. The zero value is the strictest.
type Options struct {
	// IgnoreUnknown ignores unknown keys. A known key in the wrong case is still refused.
	IgnoreUnknown bool
	// IgnoreReadOnly ignores keys of fields that are tagged out, which only answers have.
	IgnoreReadOnly bool
	// MaxProblems is the number of problems after which reading stops. Default 1000.
	MaxProblems int
	// Unparsed collects the invalid elements of fields tagged items or points. An invalid item is left out of its
	// list, an invalid point is zero, and neither is returned as a problem. If Unparsed is nil, they are returned as
	// problems.
	Unparsed *healthdata.Unparsed
}

// maxDepth is the largest nesting of lists and objects.
const maxDepth = 64

// maxKey is the number of bytes of an unknown key that the path of a problem shows.
const maxKey = 64

// Decode reads data, one JSON value, into *v and returns every problem. If there are problems, *v must not be used. It
// keeps no reference to data.
func Decode(data []byte, v any, o Options) healthlab.Problems {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		panic("wire: Decode needs a pointer")
	}
	if o.MaxProblems <= 0 {
		o.MaxProblems = 1000
	}
	d := decoder{scanner: scanner{data: data}, Options: o}
	if !d.value(planOf(rv.Type().Elem()), rv.Elem(), rules{}) || d.peek() != 0 || d.pos < len(data) {
		d.stop("json_trailing", "must have no text after the JSON value") // no effect if reading has stopped before
		f := d.fault
		d.problems = append(d.problems, healthlab.Problem{
			Path: d.pathOf(), Code: f.code, Msg: f.msg, Context: map[string]any{"offset": f.offset},
		})
	}
	if len(d.problems) > 0 {
		d.problems = append(d.problems, d.ofItems[:min(len(d.ofItems), d.MaxProblems)]...)
	}
	return d.problems
}

// decoder reads JSON text into a Go value. Its methods take the first byte of the value as c, the plan of the Go type
// as p, and the rules of the field as r. They return false if the rest of the text cannot be read. They record other
// problems and continue.
type decoder struct {
	scanner
	Options
	problems healthlab.Problems
	path     []step
	item     item
	ofItems  healthlab.Problems // problems of items with full paths; reported only if the body has other problems
	scratch  []byte
	keys     []rawKey // keys of the objects being read that have no Go type
	interned [128]string
	slabs    map[*plan]*slab
	zone     *time.Location // zone of the field time_zone; valid if zoneRead
	zoneRead bool
}

// item describes the item of an upload that is being read.
type item struct {
	inside bool
	depth  int                // length of the path of the item
	bad    bool               // the item has a problem
	named  bool               // the problems of the item are recorded in noted; false beyond MostRefusals
	noted  healthlab.Problems // problems of the item with full paths
}

// slab is a block of values of one type that were allocated together. Pointer fields point to its values.
type slab struct {
	values reflect.Value // a slice of the type
	used   int
}

// maxSlab is the largest number of values allocated together, because one reachable value keeps all of them in memory.
const maxSlab = 64

// newValue returns a pointer to a new value of type t. It allocates several values at once, and more each time.
func (d *decoder) newValue(p *plan, t reflect.Type) reflect.Value {
	s := d.slabs[p]
	if s == nil {
		if d.slabs == nil {
			d.slabs = map[*plan]*slab{}
		}
		d.slabs[p] = &slab{}
		return reflect.New(t)
	}
	if !s.values.IsValid() || s.used == s.values.Len() {
		n := 1
		if s.values.IsValid() {
			n = min(2*s.values.Len(), maxSlab)
		}
		*s = slab{values: reflect.MakeSlice(reflect.SliceOf(t), n, n)}
	}
	v := s.values.Index(s.used).Addr()
	s.used++
	return v
}

// step is one level of nesting. Paths are built from steps only when a problem is reported.
type step struct {
	name  string // a known key
	key   text   // an unknown key, if name is empty
	index int    // the position in a list, if isPos
	isPos bool
}

// enter adds a level of nesting to the path. It fails if the nesting exceeds maxDepth.
func (d *decoder) enter() bool {
	if len(d.path) >= maxDepth {
		return d.stop("json_depth", fmt.Sprintf("must be nested at most %d levels deep", maxDepth))
	}
	d.path = append(d.path, step{})
	return true
}

func (d *decoder) leave() { d.path = d.path[:len(d.path)-1] }

func (d *decoder) at() *step { return &d.path[len(d.path)-1] }

// pathOf returns the path of the current value.
func (d *decoder) pathOf() []any {
	out := make([]any, 0, len(d.path))
	for _, s := range d.path {
		switch {
		case s.isPos:
			out = append(out, s.index)
		case s.name != "":
			out = append(out, s.name)
		case s.key.raw != nil:
			out = append(out, truncateKey(s.key))
		}
	}
	return out
}

// truncateKey returns a caller's key, cut to maxKey bytes, for the path of a problem.
func truncateKey(k text) string {
	s := strings.ToValidUTF8(string(k.appendPlain(nil)), "\uFFFD")
	s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	if len(s) <= maxKey {
		return s
	}
	cut := maxKey
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// addProblem records a problem at the current path. It returns false if MaxProblems is reached.
func (d *decoder) addProblem(code, msg string) bool {
	if d.item.inside && !d.item.named {
		d.item.bad = true
		return true
	}
	return d.add(healthlab.Problem{Path: d.pathOf(), Code: code, Msg: msg})
}

func (d *decoder) add(p healthlab.Problem) bool {
	if d.item.inside {
		d.item.bad = true
		if d.item.named && len(d.item.noted) < healthdata.MostItemProblems {
			d.item.noted = append(d.item.noted, p)
		}
		return true
	}
	d.problems = append(d.problems, p)
	if len(d.problems) < d.MaxProblems {
		return true
	}
	d.path = d.path[:0]
	return d.stop("too_many_problems", fmt.Sprintf("has %d or more problems; the rest of the body was not checked", d.MaxProblems))
}

// problemCount returns the number of recorded problems, plus one if the current item has a problem, because the
// problems of an item may not be recorded.
func (d *decoder) problemCount() int {
	n := len(d.problems) + len(d.item.noted)
	if d.item.bad {
		n++
	}
	return n
}

func (d *decoder) wrongType(msg string) bool {
	if c := d.peek(); c != '-' && c-'0' > 9 && !strings.ContainsRune(`"{[tfn`, rune(c)) {
		return d.skipValue() // not JSON at all
	}
	return d.addProblem("wrong_type", msg) && d.skipValue()
}

// value reads one value into v, by the kind of its plan.
func (d *decoder) value(p *plan, v reflect.Value, r rules) bool {
	c := d.peek()
	switch {
	case c == 'n':
		return d.null(p, v, r)
	case c == 0 && d.pos >= len(d.data):
		return d.broken("is not JSON: it ends too early")
	}
	switch p.kind {
	case kindStruct:
		return d.object(p, v, c)
	case kindString:
		return d.stringInto(v, c)
	case kindFloat:
		return d.float(p, v, c)
	case kindInt, kindUint:
		return d.integer(p, v, r, c)
	case kindBool:
		return d.boolean(v, c)
	case kindList:
		return d.list(p, v, r, c)
	case kindPointer:
		v.Set(d.newValue(p, v.Type().Elem()))
		return d.value(p.elem, v.Elem(), r)
	case kindOpt:
		v.Field(optSet).SetBool(true)
		return d.value(p.elem, v.Field(optValue), r)
	case kindUUID, kindDate, kindText:
		return d.textual(p, v, c)
	case kindTime:
		return d.instant(v, r, c)
	case kindArray:
		return d.array(p, v, c)
	case kindMap:
		return d.mapping(p, v, r, c)
	case kindNumber:
		return d.numberText(v, c)
	default:
		return d.decodeRaw(p, v, c)
	}
}

// null reads null, and records a problem unless the rules of the field allow null.
func (d *decoder) null(p *plan, v reflect.Value, r rules) bool {
	start := d.pos
	if !d.word("null") {
		return false
	}
	allowed := r.nullable
	switch p.kind {
	case kindPointer, kindAny, kindOpt, kindRaw:
		allowed = true
	}
	if !allowed || r.notnull {
		return d.addProblem("null", "must not be null")
	}
	switch p.kind {
	case kindOpt:
		v.SetZero()
		v.Field(optSet).SetBool(true)
		v.Field(optNull).SetBool(true)
	case kindRaw:
		v.SetBytes([]byte("null"))
	case kindOwn:
		return d.callUnmarshalJSON(v, d.data[start:d.pos])
	default:
		v.SetZero()
	}
	return true
}

// object reads an object into a struct.
func (d *decoder) object(p *plan, v reflect.Value, c byte) bool {
	if c != '{' {
		return d.wrongType("must be an object")
	}
	d.pos++
	if !d.enter() {
		return false
	}
	var have seen
	next := 0
	for first := true; ; first = false {
		more, ok := d.comma(first, '}', "is not JSON: an object goes on with a comma or ends with }")
		if !ok {
			return false
		}
		if !more {
			break
		}
		key, ok := d.key()
		if !ok {
			return false
		}
		*d.at() = step{key: key}
		i := p.find(key, next, &d.scratch)
		if i < 0 {
			if !d.unknownKey(p, key) {
				return false
			}
			continue
		}
		f := &p.fields[i]
		*d.at() = step{name: f.name}
		next = i + 1
		if have.has(i) {
			if !d.addProblem("duplicate_key", "must occur only once") || !d.skipValue() {
				return false
			}
			continue
		}
		have.add(i)
		if !d.value(f.plan, f.of(v), f.rules) {
			return false
		}
	}
	if have != p.required && !d.missing(p, &have) {
		return false
	}
	d.leave()
	return true
}

// missing records a problem for each required field that is not in have.
func (d *decoder) missing(p *plan, have *seen) bool {
	for w := range have {
		if p.required[w]&^have[w] == 0 {
			continue
		}
		for i := w * 64; i < min(len(p.fields), w*64+64); i++ {
			if !p.required.has(i) || have.has(i) {
				continue
			}
			*d.at() = step{name: p.fields[i].name}
			if !d.addProblem("missing", "is required") {
				return false
			}
		}
	}
	return true
}

func (f *field) of(v reflect.Value) reflect.Value {
	if f.deep == nil {
		return v.Field(f.index)
	}
	return v.FieldByIndex(f.deep)
}

// find returns the index of the field whose name is key; -1 if there is none. It first compares the field at next,
// because objects mostly have their keys in the same order. scratch is memory that it may use.
func (p *plan) find(key text, next int, scratch *[]byte) int {
	raw := key.raw
	if key.escaped {
		*scratch = key.appendPlain((*scratch)[:0])
		raw = *scratch
	}
	if next < len(p.fields) && p.fields[next].name == string(raw) {
		return next
	}
	if i, ok := p.byName[string(raw)]; ok {
		return i
	}
	return -1
}

// unknownKey records a problem for an unknown key, unless the options ignore the key, and skips its value.
func (d *decoder) unknownKey(p *plan, key text) bool {
	name := string(key.appendPlain(nil))
	for i := range p.fields {
		if strings.EqualFold(p.fields[i].name, name) {
			return d.add(healthlab.Problem{
				Path: d.pathOf(), Code: "key_case", Msg: "must be spelt " + p.fields[i].name + ": keys are case-sensitive",
				Context: map[string]any{"expected": p.fields[i].name},
			}) && d.skipValue()
		}
	}
	if d.IgnoreReadOnly && p.readOnly[name] {
		return d.skipValue()
	}
	if !d.IgnoreUnknown && !d.addProblem("unknown_key", "must be absent: this object has no such key") {
		return false
	}
	return d.skipValue()
}

// comma reads the separator before the next member of a list or object: nothing before the first member, a comma before
// others. more is false if end, the closing bracket, was read. ok is false after a syntax error, which has the text
// msg.
func (d *decoder) comma(first bool, end byte, msg string) (more, ok bool) {
	c := d.peek()
	if c == end {
		d.pos++
		return false, true
	}
	if first {
		return true, true
	}
	if c != ',' {
		return false, d.broken(msg)
	}
	d.pos++
	if d.peek() == end {
		return false, d.broken("is not JSON: a comma before the end")
	}
	return true, true
}

// key reads a key and its colon.
func (d *decoder) key() (text, bool) {
	if d.peek() != '"' {
		return text{}, d.broken("is not JSON: a key is a text in quotes")
	}
	key, ok := d.text()
	if !ok {
		return key, false
	}
	if !d.skip(':') {
		return key, d.broken("is not JSON: a colon must follow a key")
	}
	if key.bad != sound {
		*d.at() = step{}
		return key, d.flawed(key.bad, "key")
	}
	return key, true
}
