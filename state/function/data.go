package function

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// data is a store of values that outlives a run: the file datastore.json in the cache directory, which only its owner may
// read.
type data struct{ *Facts }

func dataTable(f *Facts) Table {
	d := data{f}
	get := Of("key, default=None", d.get)
	return Table{
		"data.load": Of("", d.load), "data.items": Of("", d.load),
		"data.get": get, "data.getval": get,
		"data.getvals": Of("*args", d.several),
		"data.has_key": Of("key", func(key string) (bool, error) { m, err := d.load(); return m.Has(key), err }),
		"data.keys":    Of("", func() ([]string, error) { m, err := d.load(); return m.Names(), err }),
		"data.values":  Of("", d.values),
	}
}

func dataActs(f *Facts) Table {
	d := data{f}
	return Table{
		"data.clear":  Of("", func() (bool, error) { return d.store(value.NewMap()) }),
		"data.dump":   Of("new_data", d.store),
		"data.update": Of("key, value", d.update),
		"data.pop":    Of("key, default=None", d.pop),
		"data.cas":    Of("key, value, old_value", d.swap),
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
	text, err := readText(d.Host, d.file())
	if absent(err) {
		return value.NewMap(), nil
	}
	if err != nil {
		return value.NewMap(), err
	}
	v, err := value.FromJSON([]byte(text))
	m, ok := v.(*value.Map)
	if err != nil || !ok {
		return value.NewMap(), fmt.Errorf("%s is no mapping in JSON; `corpus-agent call data.clear` empties it", d.file())
	}
	return m, nil
}

func (d data) store(m *value.Map) (bool, error) {
	text, err := value.Dumps(m, value.JSONOptions{})
	if err != nil {
		return false, err
	}
	if !json.Valid([]byte(text)) {
		return false, typeError("the data has values that JSON does not know")
	}
	mode := fs.FileMode(0o600)
	if err := d.Host.MkdirAll(path.Dir(d.file())); err != nil {
		return false, err
	}
	if err := d.Host.Announce(d.file()); err != nil {
		return false, err
	}
	err = d.Host.Files.Write(d.file(), host.NewFile{Content: strings.NewReader(text + "\n"), Mode: &mode, UID: -1, GID: -1})
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

// swap sets a value if the one before it is as expected.
func (d data) swap(key string, v, old any) (bool, error) {
	m, err := d.load()
	now, ok := m.Get(key)
	if err != nil || !ok || !value.Equal(now, old) {
		return false, err
	}
	m.Set(key, v)
	return d.store(m)
}
