package wire

import (
	"fmt"
	"reflect"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// list reads a list into a slice.
func (d *decoder) list(p *plan, v reflect.Value, r rules, c byte) bool {
	if c != '[' {
		return d.wrongType("must be a list")
	}
	d.pos++
	if !d.enter() {
		return false
	}
	n, text := 0, 0 // text is the length of the elements that are kept
	alone := (r.items || r.points) && d.Unparsed != nil && !d.item.inside
	if v.IsNil() {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	v.SetLen(0)
	for {
		more, ok := d.comma(n == 0, ']', "is not JSON: a list goes on with a comma or ends with ]")
		if !ok {
			return false
		}
		if !more {
			break
		}
		if r.max > 0 && n == r.max {
			*d.at() = step{}
			return d.tooMany(r.max, ']')
		}
		*d.at() = step{index: n, isPos: true}
		kept := v.Len()
		if kept >= v.Cap() {
			v.Grow(d.capacityFor(kept, text))
		}
		v.SetLen(kept + 1)
		start := d.pos
		if alone {
			d.enterItem()
		}
		if !d.value(p.elem, v.Index(kept), r.inside()) {
			return false
		}
		bad := alone && d.endItem(r.points)
		if bad {
			v.Index(kept).SetZero()
		}
		if bad && r.items {
			v.SetLen(kept)
		} else {
			text += d.pos - start
		}
		n++
	}
	d.leave()
	return true
}

func (d *decoder) enterItem() {
	d.item = item{inside: true, depth: len(d.path), named: len(d.Unparsed.First) < healthdata.MostRefusals}
}

// endItem ends an item. It reports whether the item had problems, and adds them to Unparsed. If the item is a point,
// the path of its problems is the name of its list.
func (d *decoder) endItem(point bool) bool {
	it := d.item
	d.item = item{}
	if !it.bad {
		return false
	}
	d.Unparsed.Count++
	if it.named {
		r := healthdata.Refusal{Index: d.path[it.depth-1].index}
		for _, p := range it.noted {
			d.ofItems = append(d.ofItems, p)
			if p.Path = p.Path[it.depth:]; point {
				p.Path = []any{d.path[it.depth-2].name}
			}
			r.Problems = append(r.Problems, p)
		}
		d.Unparsed.First = append(d.Unparsed.First, r)
	}
	return true
}

// capacityFor returns by how many elements to grow a list whose n elements were read from text bytes. It estimates the
// elements in the rest of the body, so that a long list is seldom copied, but grows a list at most to four times n.
func (d *decoder) capacityFor(n, text int) int {
	if n < 16 {
		return 1
	}
	each := text/n + 1 // with the comma
	return max(1, min(3*n, (len(d.data)-d.pos)/each+1))
}

func (r rules) inside() rules { return rules{tolerant: r.tolerant} }

// tooMany records that a list or map has more than limit members, and skips the rest up to end, the closing bracket.
func (d *decoder) tooMany(limit int, end byte) bool {
	members := "elements"
	if end == '}' {
		members = "keys"
	}
	if !d.add(healthlab.Problem{
		Path: d.pathOf(), Code: "too_many_items", Msg: fmt.Sprintf("must have at most %d %s", limit, members),
		Context: map[string]any{"limit": limit},
	}) {
		return false
	}
	for first := true; ; first = false {
		more, ok := d.comma(first, end, "is not JSON: a list or object goes on with a comma or ends")
		if !ok {
			return false
		}
		if !more {
			d.leave()
			return true
		}
		if end == '}' {
			if _, ok := d.key(); !ok {
				return false
			}
		}
		if !d.skipValue() {
			return false
		}
	}
}

// array reads a list into an array. The list must have exactly the length of the array.
func (d *decoder) array(p *plan, v reflect.Value, c byte) bool {
	if c != '[' {
		return d.wrongType("must be a list")
	}
	d.pos++
	if !d.enter() {
		return false
	}
	n := 0
	for {
		more, ok := d.comma(n == 0, ']', "is not JSON: a list goes on with a comma or ends with ]")
		if !ok {
			return false
		}
		if !more {
			break
		}
		*d.at() = step{index: n, isPos: true}
		if n < p.length {
			ok = d.value(p.elem, v.Index(n), rules{})
		} else {
			ok = d.skipValue()
		}
		if !ok {
			return false
		}
		n++
	}
	d.leave()
	if n != p.length {
		return d.add(healthlab.Problem{
			Path: d.pathOf(), Code: "wrong_length", Msg: fmt.Sprintf("must have exactly %d elements", p.length),
			Context: map[string]any{"length": p.length},
		})
	}
	return true
}

// mapping reads an object into a map.
func (d *decoder) mapping(p *plan, v reflect.Value, r rules, c byte) bool {
	if c != '{' {
		return d.wrongType("must be an object")
	}
	d.pos++
	if !d.enter() {
		return false
	}
	t := v.Type()
	v.Set(reflect.MakeMap(t))
	for n := 0; ; n++ {
		more, ok := d.comma(n == 0, '}', "is not JSON: an object goes on with a comma or ends with }")
		if !ok {
			return false
		}
		if !more {
			d.leave()
			return true
		}
		if r.max > 0 && n == r.max {
			*d.at() = step{}
			return d.tooMany(r.max, '}')
		}
		raw, ok := d.key()
		if !ok {
			return false
		}
		*d.at() = step{key: raw}
		key := reflect.New(t.Key()).Elem()
		if p.textKey {
			d.scratch = raw.appendPlain(d.scratch[:0])
			if !d.keyText(key, d.scratch) {
				return false
			}
		} else {
			key.SetString(string(raw.appendPlain(nil)))
		}
		if v.MapIndex(key).IsValid() {
			if !d.addProblem("duplicate_key", "must occur only once") || !d.skipValue() {
				return false
			}
			continue
		}
		value := reflect.New(t.Elem()).Elem()
		if !d.value(p.elem, value, r.inside()) {
			return false
		}
		v.SetMapIndex(key, value)
	}
}

func (d *decoder) keyText(key reflect.Value, b []byte) bool {
	if isUUID(key.Type()) && len(b) != 36 {
		return d.addProblem("bad_uuid", uuidRule)
	}
	return d.handText(key, b)
}
