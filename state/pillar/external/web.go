package external

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

var grainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<(.*?)>`) })

// page returns the response of a server, parsed as JSON or YAML.
func (w World) page(ctx context.Context, s Source) (any, error) {
	p, err := parameters(s.Argument, "url", "with_grains", "header_dict", "auth", "username", "password", "namespace")
	if err != nil {
		return nil, err
	}
	if value.Truth(p.Value("auth")) {
		return nil,
			diag.External.Hint(errors.New("its argument auth is not supported"), "use username and password, or header_dict")
	}
	address, err := w.address(value.Str(p.Value("url")), value.Truth(p.Value("with_grains")))
	if err != nil {
		return nil, err
	}
	kwargs := value.NewMap("decode", true, "decode_type", s.Name[len("http_"):])
	for _, name := range []string{"header_dict", "username", "password"} {
		if v := p.Value(name); v != nil {
			kwargs.Set(name, v)
		}
	}
	w.hide(p.Value("password"))
	answer, err := w.Call(ctx, "http.query", []any{address}, kwargs)
	if err != nil {
		return nil, err
	}
	m, _ := answer.(*value.Map)
	if problem := m.Value("error"); problem != nil {
		return nil, diag.External.Hint(errors.New(value.Str(problem)), "see whether the host reaches the server of the URL")
	}
	data := m.Value("dict")
	if namespace := p.Value("namespace"); value.Truth(namespace) {
		return value.NewMap(value.Str(namespace), data), nil
	}
	return data, nil
}

// address inserts the host's ID and its grains into a URL.
func (w World) address(text string, grains bool) (string, error) {
	text = strings.ReplaceAll(text, "%s", url.PathEscape(w.ID))
	if !grains {
		return text, nil
	}
	var missing error
	text = grainName().ReplaceAllStringFunc(text, func(word string) string {
		name := word[1 : len(word)-1]
		v, found := value.Lookup(w.Grains, name, ":")
		if !found || !value.Truth(v) {
			missing = diag.External.Hint(fmt.Errorf("the host has no grain %s, which its URL names", name),
				"corpus-agent grains shows those there are")
		}
		return url.PathEscape(value.Str(v))
	})
	return text, missing
}

func fromJSON(text string) (any, error) { return value.FromJSON([]byte(text)) }

func fromYAML(text string) (any, error) {
	doc, err := yaml.LoadString(text, "what the command prints")
	if err != nil {
		return nil, err
	}
	return doc.Value, nil
}
