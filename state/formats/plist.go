package formats

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// maxDepth is the maximum nesting of lists and mappings.
const maxDepth = 200

// errDepth is the error for values that are nested deeper than any legitimate file nests them.
var errDepth = errors.New("its values are nested too deeply")

// Plist reads a property list that is written as XML. Dates are texts, as Python prints them.
func Plist(text []byte) (any, error) {
	if bytes.HasPrefix(text, []byte("bplist")) {
		return nil, errors.New("it is a binary property list, and those in XML are read")
	}
	p := plist{xml.NewDecoder(bytes.NewReader(text))}
	start, err := p.next()
	if err != nil || start == nil || start.Name.Local != "plist" {
		return nil, fmt.Errorf("it is not a property list: %w", errors.Join(err, errors.New("no element plist")))
	}
	if start, err = p.next(); err != nil {
		return nil, err
	}
	if start == nil {
		return nil, errors.New("the property list is empty")
	}
	return p.value(*start, maxDepth)
}

type plist struct{ *xml.Decoder }

// next returns the start of the next element; nil at the end of the one around it.
func (p plist) next() (*xml.StartElement, error) {
	for {
		token, err := p.Token()
		switch token := token.(type) {
		case xml.StartElement:
			return &token, err
		case xml.EndElement:
			return nil, err
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

func (p plist) text(start xml.StartElement) (text string, err error) {
	return text, p.DecodeElement(&text, &start)
}

func (p plist) value(start xml.StartElement, depth int) (any, error) {
	if depth == 0 {
		return nil, errDepth
	}
	switch start.Name.Local {
	case "dict":
		return p.mapping(depth)
	case "array":
		return p.array(depth)
	}
	text, err := p.text(start)
	if err != nil {
		return nil, err
	}
	switch kind := start.Name.Local; kind {
	case "string":
		return text, nil
	case "true", "false":
		return kind == "true", nil
	case "integer":
		n, err := strconv.ParseInt(strings.TrimSpace(text), 0, 64)
		return int(n), err
	case "real":
		return strconv.ParseFloat(strings.TrimSpace(text), 64)
	case "date":
		return strings.TrimSuffix(strings.Replace(text, "T", " ", 1), "Z"), nil
	case "data":
		return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	}
	return nil, fmt.Errorf("a property list has no element %s", start.Name.Local)
}

func (p plist) array(depth int) (any, error) {
	list := value.NewList()
	for {
		start, err := p.next()
		if err != nil || start == nil {
			return list, err
		}
		item, err := p.value(*start, depth-1)
		if err != nil {
			return nil, err
		}
		list.Append(item)
	}
}

func (p plist) mapping(depth int) (any, error) {
	m := value.NewMap()
	for {
		start, err := p.next()
		if err != nil || start == nil {
			return m, err
		}
		if start.Name.Local != "key" {
			return nil, fmt.Errorf("an element %s stands where a key belongs", start.Name.Local)
		}
		key, err := p.text(*start)
		if err != nil {
			return nil, err
		}
		if start, err = p.next(); err != nil {
			return nil, err
		}
		if start == nil {
			return nil, fmt.Errorf("key %s has no value", key)
		}
		item, err := p.value(*start, depth-1)
		if err != nil {
			return nil, err
		}
		m.Set(key, item)
	}
}
