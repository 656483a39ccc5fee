package procedure

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Layers holds the layers of a project's configuration, each with priority over the one before. Sample and Pillar may
// have the project's configuration at their top or below the project's name.
type Layers struct {
	Project  string
	Defaults *value.Map // values that no layer sets
	Facts    *value.Map // what the host knows: names, paths, release
	Sample   *value.Map // .salt/PILLAR.sample
	Pillar   *value.Map // the project's own pillar on the host
	Env      string     // environment, whose defaults apply
	OS       string     // grain os, whose defaults apply
	Saved    *value.Map // what set-configuration wrote
	Given    *value.Map // the command line
}

// The keys of a configuration with a meaning in this package; any other key is set in data.
const (
	keyData        = "data"
	keyEnvDefaults = "env_defaults"
	keyOSDefaults  = "os_defaults"
)

// plain returns the keys that can be set outside of data.
func plain() []string {
	return []string{keyData, keyEnvDefaults, keyOSDefaults, "user", "group", "default_env", "ssh_keys"}
}

// Merge returns the configuration that procedures see as cfg.
func (l Layers) Merge() (*value.Map, error) {
	cfg := value.NewMap()
	for _, layer := range []*value.Map{l.Defaults, l.section(l.Sample), l.section(l.Pillar)} {
		if err := over(&cfg, layer); err != nil {
			return nil, err
		}
	}
	for _, d := range []struct{ key, which string }{{keyEnvDefaults, l.Env}, {keyOSDefaults, l.OS}} {
		all, _ := cfg.Value(d.key).(*value.Map)
		if all == nil {
			continue
		}
		if defaults, ok := all.Value(d.which).(*value.Map); ok {
			if err := over(&cfg, value.NewMap(keyData, defaults)); err != nil {
				return nil, err
			}
		}
	}
	for _, layer := range []*value.Map{l.Saved, l.Given, l.Facts} {
		if err := over(&cfg, layer); err != nil {
			return nil, err
		}
	}
	if _, ok := cfg.Value(keyData).(*value.Map); !ok {
		cfg.Set(keyData, value.NewMap())
	}
	expanded, err := expand(cfg)
	if err == nil {
		err = checkAccounts(expanded)
	}
	if err != nil {
		return nil, err
	}
	return expanded, nil
}

// checkAccounts returns an error if the user or group is not a valid name: states set them as owners of files, and
// useradd gets them as arguments.
func checkAccounts(cfg *value.Map) error {
	for _, key := range []string{"user", "group"} {
		name, ok := cfg.Get(key)
		if !ok || name == nil {
			continue
		}
		if err := artifact.CheckUser(value.Str(name)); err != nil {
			return fmt.Errorf("%s of the configuration: %w", key, err)
		}
	}
	return nil
}

// section returns the project's configuration in a document.
func (l Layers) section(doc *value.Map) *value.Map {
	for _, name := range []string{"makina-projects." + l.Project, l.Project} {
		if m, ok := doc.Value(name).(*value.Map); ok {
			return m
		}
	}
	return doc
}

func over(cfg **value.Map, layer *value.Map) error {
	if layer.Len() == 0 {
		return nil
	}
	merged, err := value.Merge((*cfg).Clone(), layer, value.Recurse, false)
	if err == nil {
		*cfg = merged
	}
	return err
}

// variable is a reference to another value of the configuration, such as {domain}.
var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_]*)\}`) })

// deepest bounds the length of a chain of references.
const deepest = 10

// expand replaces references by values, from data first. It keeps names that are keys of neither: braces have other
// uses.
func expand(cfg *value.Map) (*value.Map, error) {
	data, _ := cfg.Value(keyData).(*value.Map)
	lookup := func(name string) (string, bool) {
		for _, m := range []*value.Map{data, cfg} {
			if v, ok := m.Get(name); ok {
				switch v.(type) {
				case *value.Map, *value.List, nil:
				default:
					return value.Str(v), true
				}
			}
		}
		return "", false
	}
	e := &expansion{lookup: lookup, left: largestConfiguration}
	expanded, _ := e.replace(cfg, "cfg").(*value.Map)
	if e.problem != nil {
		return nil, e.problem
	}
	return expanded, nil
}

// largestConfiguration bounds the bytes of all values when their references are expanded.
const largestConfiguration = 4 << 20

// expansion replaces references by values. It counts all bytes that it writes on the way, so that nested references
// that multiply end soon.
type expansion struct {
	lookup  func(name string) (string, bool)
	left    int // bytes that may still be written
	problem error
}

func (e *expansion) resolve(text, key string) string {
	for range deepest {
		next, more := e.once(text, key)
		if !more || e.problem != nil {
			return next
		}
		text = next
	}
	e.problem = diag.Project.Hint(fmt.Errorf("%s of the configuration refers to itself: %q", key, clipped(text)),
		"look for {names} that lead back to where they stand")
	return text
}

// once expands the references in a text, but not references in the expanded values.
func (e *expansion) once(text, key string) (next string, more bool) {
	var b strings.Builder
	at := 0
	for _, m := range variable().FindAllStringSubmatchIndex(text, -1) {
		v, ok := e.lookup(text[m[2]:m[3]])
		if !ok || v == text[m[0]:m[1]] {
			continue
		}
		if e.left -= m[0] - at + len(v); e.left < 0 {
			e.problem = diag.Project.Hint(
				fmt.Errorf("%s of the configuration takes more than %d MiB, with all that it refers to", key,
					largestConfiguration>>20), "look for {names} of values that have many {names} themselves")
			return "", false
		}
		b.WriteString(text[at:m[0]])
		b.WriteString(v)
		at, more = m[1], true
	}
	if !more {
		return text, false
	}
	b.WriteString(text[at:])
	return b.String(), true
}

// clipped returns a text shortened for a message.
func clipped(text string) string {
	if len(text) > 200 {
		return text[:200] + "..."
	}
	return text
}

// replace expands all strings in a value. key is the place of the value, such as data:domain.
func (e *expansion) replace(v any, key string) any {
	if e.problem != nil {
		return v
	}
	switch v := v.(type) {
	case string:
		return e.resolve(v, key)
	case *value.Map:
		m := value.NewMap()
		for name, item := range v.All() {
			m.Set(value.Str(name), e.replace(item, key+":"+value.Str(name)))
		}
		return m
	case *value.List:
		list := value.NewList()
		for i, item := range v.Items {
			list.Append(e.replace(item, fmt.Sprintf("%s:%d", key, i)))
		}
		return list
	}
	return v
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}
