package wire

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// plan holds what is needed to decode one Go type. It is made once per type and is read-only.
type plan struct {
	kind     kind
	elem     *plan // element of a pointer, list, map or Opt
	fields   []field
	byName   map[string]int
	required seen
	bits     int // size of a number in bits
	length   int // length of an array
	textKey  bool
	readOnly map[string]bool // keys of fields tagged out, which only answers have
}

type kind uint8

const (
	kindBool kind = iota
	kindInt
	kindUint
	kindFloat
	kindString
	kindNumber // json.Number
	kindUUID
	kindDate
	kindTime
	kindText  // encoding.TextUnmarshaler
	kindOwn   // json.Unmarshaler
	kindBytes // base64
	kindRaw
	kindAny
	kindPointer
	kindList
	kindArray
	kindMap
	kindStruct
	kindOpt
)

// field describes one field of a struct and its JSON key.
type field struct {
	name     string
	index    int   // index of the field in the struct
	deep     []int // index path of a field of an embedded struct; else nil
	plan     *plan
	required bool
	rules
}

// rules holds the words of the struct tag wire.
type rules struct {
	nullable, notnull, tolerant, offset, items, points bool
	max                                                int // largest number of elements; 0 for no limit
}

// maxFields is the largest number of fields of a struct, so that a set of fields has a fixed size.
const maxFields = 256

// seen is a set of fields, by their index in plan.fields.
type seen [maxFields / 64]uint64

func (s *seen) has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }
func (s *seen) add(i int)      { s[i>>6] |= 1 << (i & 63) }

// plans caches the plan of each type.
var plans sync.Map // reflect.Type → *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	// A type may contain itself, so the compiler also finds its unfinished plans by type. Only finished plans are
	// stored in plans.
	c := compiler{}
	p := c.plan(t)
	for t, p := range c {
		plans.LoadOrStore(t, p)
	}
	return p
}

type compiler map[reflect.Type]*plan

var (
	ownType    = reflect.TypeFor[json.Unmarshaler]()
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
	optType    = reflect.TypeFor[interface{ isOpt() }]()
	rawType    = reflect.TypeFor[json.RawMessage]()
	numberType = reflect.TypeFor[json.Number]()
	uuidType   = reflect.TypeFor[uuid.UUID]()
	dateType   = reflect.TypeFor[healthlab.Date]()
	timeType   = reflect.TypeFor[healthlab.Time]()
)

// plan returns the plan of a type. It panics for a type that cannot be decoded; this shows when the first body of the
// type is decoded.
func (c compiler) plan(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	if p, ok := c[t]; ok {
		return p
	}
	p := &plan{}
	c[t] = p
	if c.special(p, t) {
		return p
	}
	switch t.Kind() {
	case reflect.Bool:
		p.kind = kindBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.kind, p.bits = kindInt, t.Bits()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.kind, p.bits = kindUint, t.Bits()
	case reflect.Float32, reflect.Float64:
		p.kind, p.bits = kindFloat, t.Bits()
	case reflect.String:
		p.kind = kindString
	case reflect.Pointer:
		p.kind, p.elem = kindPointer, c.plan(t.Elem())
	case reflect.Slice:
		p.kind, p.elem = kindList, c.plan(t.Elem())
		if t.Elem().Kind() == reflect.Uint8 {
			p.kind = kindBytes
		}
	case reflect.Array:
		p.kind, p.elem, p.length = kindArray, c.plan(t.Elem()), t.Len()
	case reflect.Map:
		p.kind, p.elem = kindMap, c.plan(t.Elem())
		p.textKey = reflect.PointerTo(t.Key()).Implements(textType)
		if !p.textKey && t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("wire: %v: keys of a map must be text", t))
		}
	case reflect.Struct:
		p.kind = kindStruct
		c.fields(p, t)
	default:
		panic(fmt.Sprintf("wire: no body has a %v", t))
	}
	return p
}

// special sets the kind of types whose JSON form differs from that of their Go kind, such as times and UUIDs. It
// returns false for other types.
func (c compiler) special(p *plan, t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	switch {
	case t == rawType:
		p.kind = kindRaw
	case t == numberType:
		p.kind = kindNumber
	case t == dateType:
		p.kind = kindDate
	case t == timeType:
		p.kind = kindTime
	case isUUID(t):
		p.kind = kindUUID
	case t.Kind() == reflect.Interface && t.NumMethod() == 0:
		p.kind = kindAny
	case t.Kind() == reflect.Pointer:
		return false
	case t.Implements(optType):
		value, _ := t.FieldByName("Value")
		p.kind, p.elem = kindOpt, c.plan(value.Type)
	case pointer.Implements(ownType):
		p.kind = kindOwn
	case pointer.Implements(textType):
		p.kind = kindText
	default:
		return false
	}
	return true
}

func isUUID(t reflect.Type) bool {
	if t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Anonymous {
		return t.Field(0).Type == uuidType && !reflect.PointerTo(t).Implements(ownType)
	}
	return t == uuidType
}

func (c compiler) fields(p *plan, t reflect.Type) {
	p.byName = map[string]int{}
	depth := map[string]int{}
	c.addFields(p, t, nil, depth)
	for i, f := range p.fields {
		p.byName[f.name] = i
		if f.required {
			p.required.add(i)
		}
	}
}

// addFields adds the fields of t, including those of embedded structs. at is the index path of t in the outermost
// struct. depth maps the names of added fields to their depth: of two fields with the same name, the outer one is used.
func (c compiler) addFields(p *plan, t reflect.Type, at []int, depth map[string]int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Tag.Get("json") == "-" {
			continue
		}
		index := append(append(make([]int, 0, len(at)+1), at...), i)
		if sf.Anonymous && name == "" {
			if sf.Type.Kind() == reflect.Struct {
				c.addFields(p, sf.Type, index, depth)
				continue
			}
			if sf.Type.Kind() == reflect.Pointer {
				panic(fmt.Sprintf("wire: %v.%s: embed the struct, not a pointer", t, sf.Name))
			}
		}
		if !sf.IsExported() {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		if hasWord(sf, "out") {
			if p.readOnly == nil {
				p.readOnly = map[string]bool{}
			}
			p.readOnly[name] = true
			continue
		}
		f := field{name: name, index: i, plan: c.plan(sf.Type)}
		if len(at) > 0 {
			f.deep = index
		}
		f.read(t, sf, options)
		if before, ok := depth[name]; ok {
			switch {
			case before < len(at):
				continue
			case before == len(at):
				panic(fmt.Sprintf("wire: %v: two fields are called %s", t, name))
			}
			for j := range p.fields {
				if p.fields[j].name == name {
					p.fields[j] = f
				}
			}
		} else {
			p.fields = append(p.fields, f)
		}
		depth[name] = len(at)
		if len(p.fields) > maxFields {
			panic(fmt.Sprintf("wire: %v has more than %d fields", t, maxFields))
		}
	}
}

func hasWord(sf reflect.StructField, word string) bool {
	return slices.Contains(strings.Split(sf.Tag.Get("wire"), ","), word)
}

// read reads the tags of a field. options are the words after the name in its json tag.
func (f *field) read(t reflect.Type, sf reflect.StructField, options string) {
	f.required = f.plan.kind != kindPointer && f.plan.kind != kindOpt
	for o := range strings.SplitSeq(options, ",") {
		switch o {
		case "omitempty", "omitzero":
			f.required = false
		case "string":
			panic(fmt.Sprintf("wire: %v.%s: the json option string is not supported", t, sf.Name))
		}
	}
	tag, ok := sf.Tag.Lookup("wire")
	if !ok {
		return
	}
	for word := range strings.SplitSeq(tag, ",") {
		switch {
		case word == "required":
			f.required = true
		case word == "opt":
			f.required, f.nullable = false, true
		case word == "in":
			f.required = false
		case word == "filled": // never null in what we write
		case word == "nullable":
			f.nullable = true
		case word == "notnull":
			f.notnull = true
		case word == "tolerant":
			f.tolerant = true
		case word == "offset":
			f.offset = true
		case word == "items":
			f.items = true
		case word == "points":
			f.points = true
		case strings.HasPrefix(word, "max="):
			n, err := strconv.Atoi(word[len("max="):])
			if err != nil || n <= 0 {
				panic(fmt.Sprintf("wire: %v.%s: max is a number above zero", t, sf.Name))
			}
			f.max = n
		default:
			panic(fmt.Sprintf("wire: %v.%s: unknown word in the wire tag", t, sf.Name))
		}
	}
}
