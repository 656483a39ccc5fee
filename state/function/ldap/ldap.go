// Package ldap implements ldap.search and ldap3.search: entries of LDAP servers.
package ldap

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/ldap"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type search struct{ *function.Facts }

// Functions returns the functions of ldap and ldap3 that templates may call.
func Functions(f *function.Facts) function.Table {
	s := search{f}
	return function.Table{
		"ldap.search": function.Of("filter, dn=None, scope=None, attrs=None, **kwargs", s.configured),
		"ldap3.search": function.Of(
			"connect_spec, base, scope='subtree', filterstr='(objectClass=*)', attrlist=None, attrsonly=0", s.connected),
	}.Needing(f.Host, "ldapsearch", "ldap-utils")
}

// configured searches the server of the arguments, the configuration or the pillar.
func (s search) configured(ctx context.Context, filter, dn string, scope, attrs any, given *value.Map) (*value.Map,
	error) {
	sources := append([]*value.Map{given}, s.SettingSources(true, true, true, true)...)
	setting := func(name string) any {
		if v, ok := given.Get(name); ok {
			return v
		}
		v, _ := function.FirstSetting("ldap."+name, append(sources, function.BuiltInSettings()))
		return v
	}
	get := func(name string) string { return function.OptionalText(setting(name)) }
	if dn == "" {
		dn = get("basedn")
	}
	if !value.Truth(scope) {
		scope = setting("scope")
	}
	if attrs == nil {
		attrs = setting("attrs")
	}
	server := ldap.Server{URL: get("uri"), StartTLS: value.Truth(setting("tls"))}
	if server.URL == "" {
		server.URL = "ldap://" + get("server") + ":" + get("port")
	}
	if value.Truth(setting("no_verify")) {
		server.Env = []string{"LDAPTLS_REQCERT=never"}
	}
	if !value.Truth(setting("anonymous")) {
		server.DN, server.Password = get("binddn"), get("bindpw")
	}
	start := s.Time()
	found, err := s.search(ctx, server, dn, value.Str(scope), filter, attrs, false)
	took := s.Time().Sub(start)
	results := value.NewList()
	for _, e := range found {
		results.Append(value.Tuple{e.DN, attributes(e)})
	}
	return value.NewMap("results", results, "count", len(found), "time",
		value.NewMap("human", took.String(), "raw", fmt.Sprintf("%.5f", took.Seconds()))), err
}

// connected searches the server of a connect_spec. A base that does not exist has no entries.
func (s search) connected(ctx context.Context, spec any, base, scope, filter string, attrs, attrsOnly any) (*value.Map,
	error) {
	server, err := ldap.Parse(spec, "ldapi:///")
	if err != nil {
		return nil, err
	}
	found, err := s.search(ctx, server, base, scope, filter, attrs, value.Truth(attrsOnly))
	if program.EndedWith(err, ldap.NoSuchObject) {
		err = nil
	}
	out := value.NewMap()
	for _, e := range found {
		out.Set(e.DN, attributes(e))
	}
	return out, err
}

// scopes are the scopes of ldapsearch by their numbers and names in Salt.
const scopes = " 0=base base=base 1=one onelevel=one 2=sub subtree=sub "

func (s search) search(ctx context.Context, server ldap.Server, base, scope, filter string, attrs any,
	namesOnly bool) ([]ldap.Entry, error) {
	_, after, ok := strings.Cut(scopes, " "+scope+"=")
	if !ok {
		return nil, diag.Function.Hint(fmt.Errorf("unknown scope %s", scope), "use base, onelevel or subtree")
	}
	scope, _, _ = strings.Cut(after, " ")
	args := []string{"-b", base, "-s", scope, "--", filter}
	if namesOnly {
		args = append([]string{"-A"}, args...)
	}
	if list, ok := attrs.(*value.List); ok {
		for _, name := range list.Items {
			args = append(args, value.Str(name))
		}
	}
	return server.Search(ctx, s.Host, args...)
}

// attributes returns the attributes of an entry, whose values are bytes, as in Salt.
func attributes(e ldap.Entry) *value.Map {
	out := value.NewMap()
	for _, name := range e.Attributes.Names() {
		list := value.NewList()
		for _, v := range e.Attributes[name] {
			list.Append([]byte(v))
		}
		out.Set(name, list)
	}
	return out
}
