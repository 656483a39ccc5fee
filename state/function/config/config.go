// Package config implements config.*: settings from the options, the grains and the pillar, in the order in which Salt
// looks them up.
package config

import (
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type config struct{ *function.Facts }

// Functions returns the functions of config that templates may call.
func Functions(f *function.Facts) function.Table {
	c := config{f}
	return function.Table{
		"config.get": function.Of(
			"key, default='', delimiter=':', merge=None, omit_opts=False, omit_pillar=False, omit_master=False, "+
				"omit_grains=False", c.get),
		"config.option": function.Of(
			"value, default=None, omit_opts=False, omit_grains=False, omit_pillar=False, omit_master=False, "+
				"omit_all=False, wildcard=False", c.option),
		"config.merge": function.Of("value, default='', omit_opts=False, omit_master=False, omit_pillar=False",
			c.merge),
		"config.dot_vals":        function.Of("value", c.dotted),
		"config.items":           function.Of("", c.items),
		"config.backup_mode":     function.Of("backup=''", c.backupMode),
		"config.manage_mode":     function.Of("mode", manageMode),
		"config.valid_fileproto": function.Of("uri", validProtocol),
	}
}

func (c config) get(key, fallback any, delimiter string, merge any, noOpts, noPillar, noMaster, noGrains bool) (any,
	error) {
	if merge != nil {
		return c.getMerged(key, fallback, delimiter, value.Str(merge))
	}
	for _, data := range append(c.SettingSources(!noOpts, !noGrains, !noPillar, !noMaster), function.BuiltInSettings()) {
		if found, ok := function.Find(data, key, delimiter); ok {
			return plain(found)
		}
	}
	return fallback, nil
}

// getMerged returns a setting from all sources merged.
func (c config) getMerged(key, fallback any, delimiter, strategy string) (any, error) {
	how := value.Recurse
	if strategy == "overwrite" {
		how = value.Overwrite
	}
	all := function.BuiltInSettings()
	for _, data := range []*value.Map{c.MasterSettings(), c.CurrentPillar(), c.Grains, c.Options} {
		merged, err := value.Merge(all, data, how, false)
		if err != nil {
			return nil, err
		}
		all = merged
	}
	if found, ok := function.Find(all, key, delimiter); ok {
		return plain(found)
	}
	return fallback, nil
}

// plain returns a value, or an error if it is a reference to one of Salt's secret stores.
func plain(v any) (any, error) {
	if s, ok := v.(string); ok && strings.HasPrefix(s, "sdb://") {
		return nil,
			diag.Pillar.Hint(
				errors.New("the value is a reference to a secret store (sdb://), which the agent does not support"),
				"keep the secret in the pillar, encrypted")
	}
	return v, nil
}

func (c config) option(key string, fallback any, noOpts, noGrains, noPillar, noMaster, noneOfAll, wildcard bool) any {
	var sources []*value.Map
	if !noneOfAll {
		sources = c.SettingSources(!noOpts, !noGrains, !noPillar, !noMaster)
	}
	sources = append(sources, function.BuiltInSettings())
	if wildcard {
		return matching(key, sources, fallback)
	}
	if v, ok := function.FirstSetting(key, sources); ok {
		return v
	}
	if fallback == nil {
		return ""
	}
	return fallback
}

// matching returns all settings whose names match a glob.
func matching(pattern string, sources []*value.Map, fallback any) any {
	found := value.NewMap()
	for i := len(sources) - 2; i >= 0; i-- { // sources that come first override later ones
		for name, v := range sources[i].All() {
			if value.Glob(pattern, value.Str(name)) {
				found.Set(value.Str(name), v)
			}
		}
	}
	for name, v := range sources[len(sources)-1].All() {
		if n := value.Str(name); value.Glob(pattern, n) && !found.Has(n) {
			found.Set(n, v)
		}
	}
	if found.Len() == 0 && fallback != nil {
		return fallback
	}
	return found
}

// merge combines the values that the sources have under one name: mappings and lists are merged, any other value is
// taken from the first source. As in Salt, it modifies the mapping of the master or the pillar.
func (c config) merge(key string, fallback any, noOpts, noMaster, noPillar bool) any {
	var merged any
	for _, data := range append(c.SettingSources(!noOpts, false, false, !noMaster),
		c.SettingSources(false, false, !noPillar, false)...) {
		v, ok := data.Get(key)
		if !ok {
			continue
		}
		merged = added(merged, v)
		if s, ok := merged.(string); ok {
			return s
		}
	}
	if v, ok := function.BuiltInSettings().Get(key); ok && merged == nil {
		return v
	}
	if merged == nil {
		return fallback
	}
	return merged
}

func added(so, v any) any {
	if so == nil {
		return v
	}
	switch v := v.(type) {
	case *value.Map:
		if m, ok := so.(*value.Map); ok {
			v.Update(m)
			return v
		}
	case *value.List, value.Tuple:
		one, errOne := function.List(so)
		other, errOther := function.List(v)
		if errOne == nil && errOther == nil {
			return value.NewList(append(append([]any{}, one.Items...), other.Items...)...)
		}
	}
	return so
}

// dotted returns the settings whose names begin with a name and a dot.
func (c config) dotted(name string) *value.Map {
	found := value.NewMap()
	for _, data := range []*value.Map{c.MasterSettings(), c.Options} {
		for _, key := range data.Names() {
			if strings.HasPrefix(key, name+".") {
				found.Set(key, data.Value(key))
			}
		}
	}
	return found
}

func (c config) items() *value.Map { return c.Options }

func (c config) backupMode(backup string) any {
	if backup != "" {
		return backup
	}
	if v, ok := function.FirstSetting("backup_mode", c.SettingSources(true, true, true, true)); ok {
		return v
	}
	return ""
}

// manageMode formats a file mode as Salt does, with four digits.
func manageMode(mode any) any {
	if mode == nil {
		return nil
	}
	text := strings.ReplaceAll(value.Str(mode), "0o", "0")
	text = strings.TrimLeft(strings.Trim(strings.Trim(text, `"`), "'"), "0")
	if pad := 4 - len(text); pad > 0 {
		text = strings.Repeat("0", pad) + text
	}
	return text
}

func validProtocol(uri string) bool {
	scheme, _, ok := strings.Cut(uri, ":")
	switch strings.ToLower(scheme) {
	case "salt", "file", "http", "https", "ftp", "swift", "s3":
		return ok
	}
	return false
}
