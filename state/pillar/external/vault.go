package external

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// vaultServer is a server of Vault, with the credentials of this host.
type vaultServer struct {
	world   World
	url     string
	headers *value.Map
	verify  any
}

// vault merges the secrets at the paths of a server of Vault. A path without a secret gives nothing.
func (w World) vault(ctx context.Context, argument any) (any, error) {
	p, err := parameters(argument, "conf", "nesting_key", "merge_strategy", "merge_lists", "url", "token_file",
		"namespace")
	if err != nil {
		return nil, err
	}
	server, err := w.vaultServer(p)
	if err != nil {
		return nil, err
	}
	pattern := ""
	for _, word := range strings.Fields(value.Str(p.Value("conf"))) {
		if text, found := strings.CutPrefix(word, "path="); found {
			pattern = text
		}
	}
	if pattern == "" {
		return nil, diag.External.Hint(errors.New("it has no path"), "write `- vault: path=secret/myapp`")
	}
	strategy, _ := p.Value("merge_strategy").(string)
	if strategy == "" {
		strategy = string(value.Smart)
	}
	all := value.NewMap()
	for _, path := range w.vaultPaths(pattern) {
		secret, err := server.secret(ctx, path)
		if err != nil {
			return nil, err
		}
		if all, err = value.Merge(all, secret, value.Strategy(strategy), value.Truth(p.Value("merge_lists"))); err != nil {
			return nil, err
		}
	}
	if key := p.Value("nesting_key"); value.Truth(key) {
		return value.NewMap(value.Str(key), all), nil
	}
	return all, nil
}

// vaultServer returns the server with the token of this host. Its settings are in the argument of the source, or in the
// option vault of the minion file.
func (w World) vaultServer(p *value.Map) (vaultServer, error) {
	option, _ := w.Options.Value("vault").(*value.Map)
	auth, _ := option.Value("auth").(*value.Map)
	first := func(name string) string {
		if v := p.Value(name); value.Truth(v) {
			return value.Str(v)
		}
		if v := option.Value(name); value.Truth(v) {
			return value.Str(v)
		}
		return ""
	}
	s := vaultServer{world: w, url: strings.TrimSuffix(first("url"), "/"), headers: value.NewMap(),
		verify: option.Value("verify")}
	if s.url == "" {
		return s, diag.External.Hint(
			errors.New("it has no url"), "write `- vault: {conf: path=PATH, url: ..., token_file: FILE}`")
	}
	token, err := w.vaultToken(p, auth)
	if err != nil {
		return s, err
	}
	w.Secret(token)
	s.headers.Set("X-Vault-Token", token)
	if namespace := first("namespace"); namespace != "" {
		s.headers.Set("X-Vault-Namespace", namespace)
	}
	return s, nil
}

// vaultToken reads the token of this host.
func (w World) vaultToken(p, auth *value.Map) (string, error) {
	token, _ := auth.Value("token").(string)
	method := auth.Value("method")
	switch file := p.Value("token_file"); {
	case value.Truth(file):
		data, err := w.Files.ReadFile(value.Str(file))
		if err != nil {
			return "", err
		}
		token = strings.TrimSpace(string(data))
	case method != nil && method != "token":
		return "", diag.External.Hint(fmt.Errorf("its method of authentication %s is not supported", value.Str(method)),
			"use `token`, or `token_file` with a file that vault agent writes")
	}
	if token == "" {
		return "", diag.External.Hint(errors.New("it has no token"),
			"write the token into a file that only root can read, and name it in `token_file`")
	}
	return token, nil
}

var vaultName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(\w+)((?:\[[^\]]*\])*)\}`) })

// vaultPaths inserts the ID of the host and values of its pillar and grains into a path. It returns one path for each
// item of a list, and none if a value is missing.
func (w World) vaultPaths(pattern string) []string {
	at := vaultName().FindStringSubmatchIndex(pattern)
	if at == nil {
		return []string{strings.Trim(pattern, "/")}
	}
	var v any
	name, keys := pattern[at[2]:at[3]], strings.Trim(pattern[at[4]:at[5]], "[]")
	switch name {
	case "minion":
		v = w.ID
	case "pillar", "grains":
		in := map[string]*value.Map{"pillar": w.Pillar, "grains": w.Grains}[name]
		v, _ = value.Lookup(in, strings.ReplaceAll(keys, "][", ":"), ":")
	}
	if !value.Truth(v) {
		return nil
	}
	list, ok := v.(*value.List)
	if !ok {
		list = value.NewList(v)
	}
	var all []string
	for _, item := range list.Items {
		all = append(all, w.vaultPaths(pattern[:at[0]]+value.Str(item)+pattern[at[1]:])...)
	}
	return all
}

// secret returns the data at a path, or an empty mapping. Version 2 of the key-value store has the data below the key
// data.
func (s vaultServer) secret(ctx context.Context, path string) (*value.Map, error) {
	mount, _, err := s.get(ctx, "sys/internal/ui/mounts/"+path)
	if err != nil {
		return nil, err
	}
	version, _ := value.Lookup(mount, "options:version", ":")
	second := version == "2"
	if prefix := strings.Trim(value.Str(mount.Value("path")), "/"); second {
		path = prefix + "/data/" + strings.TrimPrefix(strings.TrimPrefix(path, prefix), "/")
	}
	data, status, err := s.get(ctx, path)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusNotFound:
		return value.NewMap(), nil
	case status >= http.StatusBadRequest:
		return nil, diag.External.Hint(fmt.Errorf("the server answers HTTP %d for %s", status, path),
			"run `vault kv get %s` with the token of this host", path)
	}
	if second {
		data, _ = data.Value("data").(*value.Map)
	}
	if data == nil {
		data = value.NewMap()
	}
	s.world.hide(data)
	return data, nil
}

// get returns the data that the server has at a path of its HTTP interface, and the status of the response.
func (s vaultServer) get(ctx context.Context, path string) (*value.Map, int, error) {
	kwargs := value.NewMap("header_dict", s.headers, "decode", true, "decode_type", "json", "status", true, "verify_ssl",
		s.verify)
	answer, err := s.world.Call(ctx, "http.query", []any{s.url + "/v1/" + path}, kwargs)
	if err != nil {
		return nil, 0, err
	}
	m, _ := answer.(*value.Map)
	status, _ := m.Value("status").(int)
	if problem := m.Value("error"); problem != nil && status == 0 {
		return nil, 0, diag.External.Hint(
			errors.New(value.Str(problem)), "see whether the host reaches the server of the URL")
	}
	all, _ := m.Value("dict").(*value.Map)
	data, _ := all.Value("data").(*value.Map)
	return data, status, nil
}
