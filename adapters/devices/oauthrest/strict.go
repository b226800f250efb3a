package oauthrest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// maxDepth is the deepest allowed nesting of a document.
const maxDepth = 64

var errDocument = fmt.Errorf("must be one JSON document that is nested at most %d levels deep", maxDepth)

// tree decodes one JSON document to maps, lists, texts, json.Number, bool and nil. If twice is not nil, duplicate keys
// are reported in it with their paths.
func tree(doc []byte, twice *healthlab.Problems) (any, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	v, err := node(d, twice, nil)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errDocument
	}
	return v, nil
}

func node(d *json.Decoder, twice *healthlab.Problems, path []any) (any, error) {
	if len(path) > maxDepth {
		return nil, errDocument
	}
	t, err := d.Token()
	if err != nil {
		return nil, errDocument
	}
	switch t {
	case json.Delim('{'):
		out := map[string]any{}
		for d.More() {
			key, err := d.Token()
			name, ok := key.(string)
			if err != nil || !ok {
				return nil, errDocument
			}
			at := under(path, name)
			if _, ok := out[name]; ok && twice != nil {
				twice.Add("duplicate", "must occur only once", at...)
			}
			if out[name], err = node(d, twice, at); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return out, err
	case json.Delim('['):
		out := []any{}
		for d.More() {
			v, err := node(d, twice, under(path, len(out)))
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err = d.Token()
		return out, err
	}
	if _, ok := t.(json.Delim); ok {
		return nil, errDocument
	}
	return t, nil
}

func under(path []any, part any) []any { return append(path[:len(path):len(path)], part) }

// assign stores v, a part of a JSON document at path, in the Go value to. Unknown keys and values of another type are
// reported in p with their paths.
func assign(p *healthlab.Problems, to reflect.Value, v any, path []any) {
	wrong := func(what string) { p.Add("type", "must be "+what, path...) }
	if to.Kind() == reflect.Pointer {
		if v == nil {
			return
		}
		to.Set(reflect.New(to.Type().Elem()))
		assign(p, to.Elem(), v, path)
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		if m, ok := v.(map[string]any); ok {
			assignStruct(p, to, m, path)
			return
		}
		wrong("an object")
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			wrong("an object")
			return
		}
		to.Set(reflect.MakeMap(to.Type()))
		for name, v := range m {
			e := reflect.New(to.Type().Elem()).Elem()
			assign(p, e, v, under(path, name))
			to.SetMapIndex(reflect.ValueOf(name).Convert(to.Type().Key()), e)
		}
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			wrong("a list")
			return
		}
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
		for i, v := range list {
			assign(p, to.Index(i), v, under(path, i))
		}
	default:
		assignLeaf(to, v, wrong)
	}
}

func assignStruct(p *healthlab.Problems, to reflect.Value, m map[string]any, path []any) {
	fields := map[string]int{}
	for i := range to.NumField() {
		name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		fields[name] = i
	}
	for name, v := range m {
		i, ok := fields[name]
		if !ok {
			p.Add("unknown_key", "must not be present: this key is unknown", under(path, name)...)
			continue
		}
		assign(p, to.Field(i), v, under(path, name))
	}
}

func assignLeaf(to reflect.Value, v any, wrong func(string)) {
	switch to.Kind() {
	case reflect.String:
		if s, ok := v.(string); ok {
			to.SetString(s)
			return
		}
		wrong("a text")
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			to.SetBool(b)
			return
		}
		wrong("true or false")
	case reflect.Int:
		if n, ok := v.(json.Number); ok {
			if i, err := n.Int64(); err == nil && i >= math.MinInt32 && i <= math.MaxInt32 {
				to.SetInt(i)
				return
			}
		}
		wrong("a whole number")
	case reflect.Float64:
		if n, ok := v.(json.Number); ok {
			if f, err := n.Float64(); err == nil {
				to.SetFloat(f)
				return
			}
		}
		wrong("a number")
	default:
		wrong("a type that this program can decode")
	}
}
