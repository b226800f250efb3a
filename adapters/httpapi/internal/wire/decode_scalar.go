package wire

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// plainText reads a JSON string. The bytes are valid until the next call. ok is false if the value is not a usable
// string, for which a problem is recorded; goOn is false if reading must stop.
func (d *decoder) plainText(c byte) (b []byte, ok, goOn bool) {
	if c != '"' {
		return nil, false, d.wrongType("must be a text")
	}
	t, goOn := d.text()
	if !goOn {
		return nil, false, false
	}
	if t.bad != sound {
		return nil, false, d.flawed(t.bad, "text")
	}
	if !t.escaped {
		return t.raw, true, true
	}
	d.scratch = t.appendPlain(d.scratch[:0])
	return d.scratch, true, true
}

func (d *decoder) flawed(f flaw, what string) bool {
	if f == holdsNUL {
		return d.addProblem("nul", "must not contain the character U+0000 in a "+what)
	}
	return d.addProblem("not_unicode", "must be valid UTF-8 without lone surrogates in a "+what)
}

func (d *decoder) stringInto(v reflect.Value, c byte) bool {
	b, ok, goOn := d.plainText(c)
	if ok {
		v.SetString(d.intern(b))
	}
	return goOn
}

// intern returns b as a string. It reuses short strings, because units and types repeat in a batch.
func (d *decoder) intern(b []byte) string {
	if len(b) == 0 || len(b) > 24 {
		return string(b)
	}
	h := uint(len(b)) + 7*uint(b[0]) + 31*uint(b[len(b)/2]) + 61*uint(b[len(b)-1])
	slot := &d.interned[h%uint(len(d.interned))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

func (d *decoder) boolean(v reflect.Value, c byte) bool {
	switch c {
	case 't':
		v.SetBool(true)
		return d.word("true")
	case 'f':
		v.SetBool(false)
		return d.word("false")
	}
	return d.wrongType("must be true or false, without quotes")
}

func isNumber(c byte) bool { return c == '-' || c-'0' <= 9 }

func (d *decoder) float(p *plan, v reflect.Value, c byte) bool {
	if !isNumber(c) {
		return d.wrongType("must be a number")
	}
	n, ok := d.number()
	if !ok {
		return false
	}
	f, err := strconv.ParseFloat(string(n.text), p.bits)
	if err != nil {
		return d.addProblem("out_of_range", floatRange(p.bits))
	}
	v.SetFloat(f)
	return true
}

func (d *decoder) integer(p *plan, v reflect.Value, r rules, c byte) bool {
	if !isNumber(c) {
		return d.wrongType("must be a whole number")
	}
	n, ok := d.number()
	if !ok {
		return false
	}
	text := n.text
	if !n.whole {
		text, ok = trimZeroFraction(text)
		if !ok || !r.tolerant {
			return d.addProblem("not_integer", "must be a whole number, without fraction or exponent")
		}
	}
	var err error
	if p.kind == kindInt {
		var i int64
		i, err = strconv.ParseInt(string(text), 10, p.bits)
		v.SetInt(i)
	} else {
		var u uint64
		u, err = strconv.ParseUint(string(text), 10, p.bits)
		v.SetUint(u)
	}
	if err != nil {
		return d.addProblem("out_of_range", integerRange(p))
	}
	return true
}

// floatRange returns the problem of a number that a float with this number of bits cannot hold.
func floatRange(bits int) string {
	most := math.MaxFloat64
	if bits == 32 {
		most = math.MaxFloat32
	}
	text := strconv.FormatFloat(most, 'g', -1, bits)
	return fmt.Sprintf("must be a number from -%s to %s", text, text)
}

// integerRange returns the problem of a whole number that the Go type of the plan cannot hold.
func integerRange(p *plan) string {
	if p.kind == kindInt {
		most := int64(math.MaxInt64) >> (64 - p.bits)
		return fmt.Sprintf("must be a whole number from %d to %d", -most-1, most)
	}
	return fmt.Sprintf("must be a whole number from 0 to %d", uint64(math.MaxUint64)>>(64-p.bits))
}

// trimZeroFraction returns the digits before the point, such as 78 of 78.0. It returns false for an exponent, for a
// fraction other than zero, and without a point.
func trimZeroFraction(number []byte) ([]byte, bool) {
	for i, c := range number {
		if c != '.' {
			continue
		}
		for _, f := range number[i+1:] {
			if f != '0' {
				return nil, false
			}
		}
		return number[:i], true
	}
	return nil, false
}

// numberText reads a number into a json.Number with its original text.
func (d *decoder) numberText(v reflect.Value, c byte) bool {
	if !isNumber(c) {
		return d.wrongType("must be a number")
	}
	n, ok := d.number()
	if !ok {
		return false
	}
	if n.huge {
		return d.addProblem("out_of_range", tooLargeExponent)
	}
	v.SetString(string(n.text))
	return true
}

// textual reads a text into a type with a method UnmarshalText.
func (d *decoder) textual(p *plan, v reflect.Value, c byte) bool {
	b, ok, goOn := d.plainText(c)
	if !ok {
		return goOn
	}
	switch p.kind {
	case kindUUID:
		id, ok := parseUUID(b)
		if !ok {
			return d.addProblem("bad_uuid", uuidRule)
		}
		if v.Kind() == reflect.Struct {
			v = v.Field(0)
		}
		reflect.Copy(v, reflect.ValueOf(id[:]))
		return true
	case kindDate:
		date, err := healthlab.ParseDate(string(b))
		if err != nil {
			return d.addProblem("bad_date", dateRule)
		}
		*v.Addr().Interface().(*healthlab.Date) = date
		return true
	}
	return d.handText(v, b)
}

// instant reads a date and time. Without an offset it is local time in the time_zone of the body, and refused if the
// body has none. A field tagged offset keeps the written offset as its location.
func (d *decoder) instant(v reflect.Value, r rules, c byte) bool {
	if c != '"' {
		return d.wrongType("must be a text")
	}
	t, ok := d.text()
	if !ok {
		return false
	}
	text := t.raw
	if t.escaped {
		d.scratch = t.appendPlain(d.scratch[:0])
		text = d.scratch
	}
	at, offset, err := healthlab.ParseTimeZone(string(text))
	if err != nil || t.bad != sound {
		return d.addProblem("bad_date_time", timeRule)
	}
	to := v.Addr().Interface().(*healthlab.Time)
	*to = at
	switch {
	case offset == nil:
		loc := d.timeZone()
		if loc == nil {
			return d.addProblem("bad_date_time", timeRule+"; without an offset only where time_zone names the zone")
		}
		*to = healthdata.Reinterpret(at, loc)
	case r.offset && (*offset != 0 || hasPlus(text)):
		to.Time = at.In(time.FixedZone("", *offset))
	}
	return true
}

func hasPlus(text []byte) bool {
	// The other ways to write the offset 0 say nothing about the local time: Z, UTC, GMT, -00:00 (RFC 3339, section 4.3).
	clock, _, _ := bytes.Cut(text, []byte("["))
	return bytes.IndexByte(clock, '+') >= 0
}

// timeZone returns the zone in the field time_zone of the body; nil if the body has none.
func (d *decoder) timeZone() *time.Location {
	if !d.zoneRead {
		d.zoneRead = true
		var body struct {
			TimeZone string `json:"time_zone"`
		}
		// The decoder itself reports an invalid body.
		if json.Unmarshal(d.data, &body) == nil && body.TimeZone != "" {
			d.zone, _ = time.LoadLocation(body.TimeZone)
		}
	}
	return d.zone
}

// Texts of rules that clients often break.
const (
	uuidRule = "must be a UUID of 36 characters"
	dateRule = "must be a calendar date as YYYY-MM-DD"
	timeRule = "must be a date and time with an offset from UTC, such as 2026-03-01T10:00:00-05:00 or 2026-03-01T15:00:00Z"
	formRule = "does not have the form that this field asks for"
)

// parseUUID reads the 36 characters of a UUID in any case. It refuses braces, urn:uuid: and missing hyphens.
func parseUUID(b []byte) (uuid.UUID, bool) {
	if len(b) != 36 {
		return uuid.Nil, false
	}
	id, err := uuid.ParseBytes(b)
	return id, err == nil
}

func (d *decoder) handText(v reflect.Value, b []byte) bool {
	err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(b)
	return err == nil || d.refused(err)
}

// refused records the error of a type's own decoder. It repeats the texts of healthlab problems only, because other
// errors may contain the value.
func (d *decoder) refused(err error) bool {
	var inv *healthlab.InvalidError
	if !errors.As(err, &inv) || len(inv.Problems) == 0 {
		return d.addProblem("bad_value", formRule)
	}
	for _, p := range inv.Problems {
		p.Path = append(d.pathOf(), p.Path...)
		if !d.add(p) {
			return false
		}
	}
	return true
}
