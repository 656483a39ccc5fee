// Package data implements data.*: a store of values that outlives a run, in the file datastore.json of the cache
// directory.
package data

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// data is a store of values that outlives a run: the file datastore.json in the cache directory, which only its owner
// may read.
type data struct{ *function.Facts }

// Functions returns the functions of data that templates may call.
func Functions(f *function.Facts) function.Table {
	d := data{f}
	get := function.Of("key, default=None", d.get)
	return function.Table{
		"data.load": function.Of("", d.load), "data.items": function.Of("", d.load),
		"data.get": get, "data.getval": get,
		"data.getvals": function.Of("*args", d.several),
		"data.has_key": function.Of("key", func(key string) (bool, error) { m, err := d.load(); return m.Has(key), err }),
		"data.keys":    function.Of("", func() ([]string, error) { m, err := d.load(); return m.Names(), err }),
		"data.values":  function.Of("", d.values),
	}
}

// Acting returns the functions of data that change the host.
func Acting(f *function.Facts) function.Table {
	d := data{f}
	return function.Table{
		"data.clear":  function.Of("", func() (bool, error) { return d.store(value.NewMap()) }),
		"data.dump":   function.Of("new_data", d.store),
		"data.update": function.Of("key, value", d.update),
		"data.pop":    function.Of("key, default=None", d.pop),
		"data.cas":    function.Of("key, value, old_value", d.swap),
	}
}

func (d data) file() string {
	dir, _ := d.Options.Value("cachedir").(string)
	if dir == "" {
		dir = "/var/cache/corpus"
	}
	return path.Join(dir, "datastore.json")
}

func (d data) load() (*value.Map, error) {
	text, err := function.ReadText(d.Host, d.file())
	if function.Absent(err) {
		return value.NewMap(), nil
	}
	if err != nil {
		return value.NewMap(), err
	}
	v, err := value.FromJSON([]byte(text))
	m, ok := v.(*value.Map)
	if err != nil || !ok {
		return value.NewMap(), fmt.Errorf("%s is not a mapping in JSON; `corpus-agent call data.clear` empties it", d.file())
	}
	return m, nil
}

func (d data) store(m *value.Map) (bool, error) {
	text, err := value.Dumps(m, value.JSONOptions{})
	if err != nil {
		return false, err
	}
	if !json.Valid([]byte(text)) {
		return false, function.TypeError("the data has values that JSON cannot represent")
	}
	mode := fs.FileMode(0o600)
	if err := d.Host.MkdirAll(path.Dir(d.file())); err != nil {
		return false, err
	}
	if err := d.Host.Announce(d.file()); err != nil {
		return false, err
	}
	err = d.Host.Files.Write(d.file(), host.NewFile{Content: strings.NewReader(text + "\n"), Mode: &mode, UID: -1,
		GID: -1})
	return err == nil, err
}

func (d data) get(key string, otherwise any) (any, error) {
	m, err := d.load()
	if v, ok := m.Get(key); ok {
		return v, err
	}
	return otherwise, err
}

func (d data) several(keys []string) (*value.List, error) {
	m, err := d.load()
	list := value.NewList()
	for _, key := range keys {
		if v, ok := m.Get(key); ok {
			list.Append(v)
		}
	}
	return list, err
}

func (d data) values() (*value.List, error) {
	m, err := d.load()
	list := value.NewList()
	for _, v := range m.All() {
		list.Append(v)
	}
	return list, err
}

func (d data) update(key string, v any) (bool, error) {
	m, err := d.load()
	if err != nil {
		return false, err
	}
	m.Set(key, v)
	return d.store(m)
}

func (d data) pop(key string, otherwise any) (any, error) {
	m, err := d.load()
	v, ok := m.Get(key)
	if err != nil || !ok {
		return otherwise, err
	}
	m.Delete(key)
	_, err = d.store(m)
	return v, err
}

// swap sets a value if the present one is as expected.
func (d data) swap(key string, v, old any) (bool, error) {
	m, err := d.load()
	now, ok := m.Get(key)
	if err != nil || !ok || !value.Equal(now, old) {
		return false, err
	}
	m.Set(key, v)
	return d.store(m)
}
