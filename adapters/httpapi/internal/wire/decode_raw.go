package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

const tooLargeExponent = "must not have an exponent of more than three digits"

// rawKey is a key of an object that is read without a Go type. Its escapes are resolved.
type rawKey []byte

// decodeRaw reads a value into a type with a method UnmarshalJSON, a json.RawMessage, a []byte (from base64) or an any.
func (d *decoder) decodeRaw(p *plan, v reflect.Value, c byte) bool {
	start, before := d.pos, d.problemCount()
	if !d.walk(c, true) {
		return false
	}
	if d.problemCount() > before {
		return true
	}
	raw := d.data[start:d.pos]
	switch p.kind {
	case kindRaw:
		v.SetBytes(bytes.Clone(raw))
		return true
	case kindBytes:
		if c != '"' {
			return d.addProblem("wrong_type", "must be a text")
		}
		if json.Unmarshal(raw, v.Addr().Interface()) != nil {
			return d.addProblem("bad_value", "must be base64 with padding")
		}
		return true
	case kindAny:
		if json.Unmarshal(raw, v.Addr().Interface()) != nil {
			return d.addProblem("out_of_range", "must not contain a number outside of the range of 64-bit floats")
		}
		return true
	}
	return d.callUnmarshalJSON(v, raw)
}

func (d *decoder) callUnmarshalJSON(v reflect.Value, raw []byte) bool {
	err := v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw)
	return err == nil || d.refused(err)
}

func (d *decoder) skipValue() bool { return d.walk(d.peek(), false) }

// walk skips a value. It checks the JSON syntax and that the nesting is at most maxDepth. If strict, it also checks
// that keys are unique, that texts are valid Unicode without NUL, and that no exponent is too large.
func (d *decoder) walk(c byte, strict bool) bool {
	switch {
	case c == '{' || c == '[':
		return d.walkInto(c, strict)
	case c == '"':
		t, ok := d.text()
		if ok && strict && t.bad != sound {
			return d.flawed(t.bad, "text")
		}
		return ok
	case isNumber(c):
		n, ok := d.number()
		if ok && strict && n.huge {
			return d.addProblem("out_of_range", tooLargeExponent)
		}
		return ok
	case c == 't':
		return d.word("true")
	case c == 'f':
		return d.word("false")
	case c == 'n':
		return d.word("null")
	case d.pos >= len(d.data):
		return d.broken("is not JSON: it ends too early")
	}
	return d.broken("is not JSON: a value cannot start like this")
}

func (d *decoder) walkInto(open byte, strict bool) bool {
	d.pos++
	if !d.enter() {
		return false
	}
	object := open == '{'
	end := byte(']')
	if object {
		end = '}'
	}
	base := len(d.keys)
	for n := 0; ; n++ {
		more, ok := d.comma(n == 0, end, "is not JSON: a list or object goes on with a comma or ends")
		if !ok {
			return false
		}
		if !more {
			break
		}
		if object {
			ok = d.walkKey(strict)
		} else {
			*d.at() = step{index: n, isPos: true}
		}
		if !ok || !d.walk(d.peek(), strict) {
			return false
		}
	}
	if !d.reportDuplicates(base) {
		return false
	}
	d.leave()
	return true
}

func (d *decoder) walkKey(strict bool) bool {
	if d.peek() != '"' {
		return d.broken("is not JSON: a key is a text in quotes")
	}
	key, ok := d.text()
	if !ok {
		return false
	}
	if !d.skip(':') {
		return d.broken("is not JSON: a colon must follow a key")
	}
	*d.at() = step{key: key}
	if !strict {
		return true
	}
	if key.bad != sound {
		return d.flawed(key.bad, "key")
	}
	raw := key.raw
	if key.escaped {
		raw = key.appendPlain(nil)
	}
	d.keys = append(d.keys, raw)
	return true
}

// reportDuplicates reports each key among keys[base:] that occurs more than once, and truncates keys to base. It sorts
// them instead of using a map.
func (d *decoder) reportDuplicates(base int) bool {
	keys := d.keys[base:]
	d.keys = d.keys[:base]
	if len(keys) < 2 {
		return true
	}
	slices.SortFunc(keys, func(a, b rawKey) int { return bytes.Compare(a, b) })
	for i := 1; i < len(keys); i++ {
		if !bytes.Equal(keys[i-1], keys[i]) {
			continue
		}
		if i > 1 && bytes.Equal(keys[i-2], keys[i]) {
			continue // already reported
		}
		*d.at() = step{key: text{raw: keys[i]}}
		if !d.addProblem("duplicate_key", "must occur only once") {
			return false
		}
	}
	return true
}
