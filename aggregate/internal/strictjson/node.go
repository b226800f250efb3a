package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Node is a JSON value with its keys in order, so that a decoder can report every unexpected key.
type Node struct {
	Kind  byte   // { object, [ list, " string, 0 number, t true or false, n null
	Raw   []byte // the text of the value
	Text  string
	Yes   bool
	Keys  []string
	Items []Node // the elements of a list, or the values of an object's keys
}

const maxDepth = 32

var (
	errDepth = fmt.Errorf("must have at most %d levels of objects and arrays", maxDepth)
	errMore  = errors.New("must have no text after the JSON value")
	errUTF8  = errors.New("must be UTF-8")
)

// Parse reads one JSON text. An error may quote the text.
func Parse(data []byte) (Node, error) {
	if !utf8.Valid(data) {
		return Node{}, errUTF8
	}
	p := parser{json.NewDecoder(bytes.NewReader(data)), data}
	p.d.UseNumber()
	n, err := p.next(maxDepth)
	if err != nil {
		return Node{}, err
	}
	if _, err := p.d.Token(); !errors.Is(err, io.EOF) {
		return Node{}, errMore
	}
	return n, nil
}

type parser struct {
	d    *json.Decoder
	data []byte
}

func (p *parser) next(depth int) (Node, error) {
	from := p.d.InputOffset()
	n, err := p.value(depth)
	n.Raw = bytes.TrimLeft(p.data[from:p.d.InputOffset()], " \t\r\n:,")
	return n, err
}

func (p *parser) value(depth int) (Node, error) {
	if depth == 0 {
		return Node{}, errDepth
	}
	t, err := p.d.Token()
	if err != nil {
		return Node{}, err
	}
	switch t := t.(type) {
	case json.Delim:
		n := Node{Kind: byte(t)}
		for p.d.More() {
			if t == '{' {
				k, err := p.d.Token()
				if err != nil {
					return Node{}, err
				}
				n.Keys = append(n.Keys, k.(string))
			}
			item, err := p.next(depth - 1)
			if err != nil {
				return Node{}, err
			}
			n.Items = append(n.Items, item)
		}
		_, err := p.d.Token()
		return n, err
	case string:
		return Node{Kind: '"', Text: t}, nil
	case json.Number:
		return Node{Kind: '0', Text: t.String()}, nil
	case bool:
		return Node{Kind: 't', Yes: t}, nil
	default:
		return Node{Kind: 'n'}, nil
	}
}

// Get returns the value of a key; nil if there is none. If the key occurs twice, it returns the first value.
func (n *Node) Get(key string) *Node {
	for i, k := range n.Keys {
		if k == key {
			return &n.Items[i]
		}
	}
	return nil
}

// Has reports whether the object has a key.
func (n *Node) Has(key string) bool { return n.Get(key) != nil }

// IsNull reports whether a value is absent or null.
func (n *Node) IsNull() bool { return n == nil || n.Kind == 'n' }
