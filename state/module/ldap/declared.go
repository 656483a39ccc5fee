package ldap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/ldap"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func invalid(what string) error {
	return diag.Argument.Hint(fmt.Errorf("entries: %s", what), "entries is a list of mappings of a DN to a list of "+
		"mappings with delete_others, or with default, add, delete or replace, and attributes with their values below")
}

// mappings returns the items of a list of mappings.
func mappings(v any) (all []*value.Map, err error) {
	list, ok := v.(*value.List)
	if !ok {
		return nil, invalid(value.TypeName(v) + " is not a list")
	}
	for _, item := range list.Items {
		m, ok := item.(*value.Map)
		if !ok {
			return nil, invalid(value.TypeName(item) + " is not a mapping")
		}
		all = append(all, m)
	}
	return all, nil
}

// declared returns entries as they are stored, and as the argument entries declares them. The same DN again continues
// with what is declared before.
func declared(v any, stored func(dn string) (ldap.Attributes, error)) (all []*entry, err error) {
	items, err := mappings(v)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		for key, v := range item.All() {
			dn := value.Str(key)
			at := slices.IndexFunc(all, func(e *entry) bool { return e.dn == dn })
			if at < 0 {
				now, err := stored(dn)
				if err != nil {
					return nil, err
				}
				at, all = len(all), append(all, &entry{dn, now, now})
			}
			if all[at].new, err = directed(v, all[at].new); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// directed returns the attributes of an entry after its directives.
func directed(v any, before ldap.Attributes) (ldap.Attributes, error) {
	items, err := mappings(v)
	if err != nil {
		return nil, err
	}
	now, mentioned, deleteOthers := ldap.Attributes{}, ldap.Attributes{}, false
	maps.Copy(now, before)
	for _, item := range items {
		for key, v := range item.All() {
			kind := value.Str(key)
			if kind == "delete_others" {
				deleteOthers = value.Truth(v)
				continue
			}
			attributes, ok := v.(*value.Map)
			if !ok || !strings.Contains(" default add delete replace ", " "+kind+" ") {
				return nil, invalid("unknown directive: " + kind)
			}
			for name, v := range attributes.All() {
				key := now.Key(value.Str(name))
				if strings.Trim(strings.ToLower(key), "abcdefghijklmnopqrstuvwxyz0123456789.;-") != "" || key == "" {
					return nil, invalid(key + " is not the name of an attribute")
				}
				mentioned[key] = nil
				if now[key] = directive(kind, now[key], valuesOf(v)); len(now[key]) == 0 {
					delete(now, key)
				}
			}
		}
	}
	for name := range now {
		if _, ok := mentioned[name]; deleteOthers && !ok {
			delete(now, name)
		}
	}
	return now, nil
}

// directive returns the values of an attribute that had some.
func directive(kind string, have, values []string) (all []string) {
	switch {
	case kind == "default" && len(have) > 0:
		return have
	case kind == "add":
		values = append(slices.Clone(have), values...)
	case kind == "delete":
		for _, v := range have {
			if len(values) > 0 && !slices.Contains(values, v) {
				all = append(all, v)
			}
		}
		return all
	}
	for _, v := range values {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

func valuesOf(v any) (all []string) {
	items := []any{v}
	if list, ok := v.(*value.List); ok {
		items = list.Items
	}
	for _, item := range items {
		if data, ok := item.([]byte); ok {
			all = append(all, string(data))
		} else if item != nil {
			all = append(all, value.Str(item))
		}
	}
	return all
}

// forActiveDirectory returns attributes with passwords as Active Directory takes them: in quotes, as UTF-16.
func forActiveDirectory(attributes ldap.Attributes) ldap.Attributes {
	key := attributes.Key("unicodePwd")
	for i, v := range attributes[key] {
		var data []byte
		for _, unit := range utf16.Encode([]rune(`"` + v + `"`)) {
			data = append(data, byte(unit), byte(unit>>8))
		}
		attributes[key] = slices.Clone(attributes[key])
		attributes[key][i] = string(data)
	}
	return attributes
}
