// Package http implements http.*: the responses of web servers to GET requests.
package http

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type http struct{ *function.Facts }

const queryParameters = "url, method='GET', params=None, header_dict=None, header_list=None, username=None, " +
	"password=None, decode=False, " +
	"decode_type='auto', status=False, headers=False, text=False, verify_ssl=None, timeout=None, raise_error=True, " +
	"decode_body=True, " +
	"backend=None, opts=None, ca_bundle=None, agent=None, follow_redirects=True"

// Functions returns the functions of http that templates may call.
func Functions(f *function.Facts) function.Table {
	h := http{f}
	return function.Table{
		"http.query":                     function.Of(queryParameters, h.query),
		"http.wait_for_successful_query": function.Of(queryParameters+", wait_for=300, request_interval=1", h.wait),
	}
}

// query fetches a page. A failure is returned as a mapping with an error in it, as in Salt.
func (h http) query(ctx context.Context, a function.Arguments) (*value.Map, error) {
	r, err := request(a)
	if err != nil {
		return nil, err
	}
	if h.Web == nil {
		return nil, errors.New("the network is not available here")
	}
	got, err := h.Web.Get(ctx, r)
	answer := value.NewMap()
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if value.Truth(a.Value("status")) {
			answer.Set("status", 0)
		}
		answer.Set("error", err.Error())
		return answer, nil
	}
	answer.Set("body", got.Body)
	if got.Status >= 400 && value.Truth(a.Value("raise_error")) {
		answer.Set("status", got.Status)
		answer.Set("error", fmt.Sprintf("HTTP %d", got.Status))
		return answer, nil
	}
	return answer, describe(answer, got, a)
}

// describe adds the parts of the response that the arguments request.
func describe(answer *value.Map, got function.Response, a function.Arguments) error {
	if a.Value("status") == true {
		answer.Set("status", got.Status)
	}
	if a.Value("headers") == true {
		answer.Set("headers", value.From(got.Header))
	}
	plain := a.Value("text") == true
	if a.Value("decode") == true {
		v, decoded, err := decodeBody(value.Str(a.Value("decode_type")), got)
		if err != nil {
			return err
		}
		if decoded {
			answer.Set("dict", v)
		}
		plain = plain || !decoded
	}
	if plain {
		answer.Set("text", got.Body)
	}
	return nil
}

// decodeBody reads the body as data; plain text is not decoded.
func decodeBody(kind string, got function.Response) (v any, decoded bool, err error) {
	if kind == "auto" {
		kind = declaredKind(got.Header["content-type"])
	}
	switch kind {
	case "json":
		v, err = function.FromJSON(got.Body, "the answer")
		return v, true, err
	case "yaml":
		v, err = function.FromYAML(got.Body, "the answer")
		return v, true, err
	case "plain":
		return nil, false, nil
	}
	return nil, false, diag.Call.Hint(fmt.Errorf("an answer is not decoded as %s", kind), "use json, yaml or plain")
}

// declaredKind returns the format that a Content-Type names: JSON if it is empty, and plain text for all other types.
func declaredKind(contentType string) string {
	if contentType == "" {
		return "json"
	}
	for _, known := range []string{"xml", "json", "yaml"} {
		if strings.Contains(contentType, known) {
			return known
		}
	}
	return "plain"
}

// request returns the request that the arguments describe.
func request(a function.Arguments) (function.Request, error) {
	method := strings.ToUpper(value.Str(a.Value("method")))
	if method != "GET" {
		return function.Request{}, diag.Call.Hint(fmt.Errorf("%s may change something, and templates only read", method),
			"use the http.query state or cmd.run")
	}
	target, err := function.Text(a.Value("url"))
	if err != nil {
		return function.Request{}, function.TypeError("argument url: %v", err)
	}
	if params, ok := a.Value("params").(*value.Map); ok {
		query := url.Values{}
		for name, v := range params.All() {
			query.Add(value.Str(name), value.Str(v))
		}
		target += "?" + query.Encode()
	}
	r := function.Request{URL: target, User: function.OptionalText(a.Value("username")),
		Password: function.OptionalText(a.Value("password")), Header: map[string]string{},
		Unverified: a.Value("verify_ssl") == false}
	if m, ok := a.Value("header_dict").(*value.Map); ok {
		for name, v := range m.All() {
			r.Header[value.Str(name)] = value.Str(v)
		}
	}
	for _, line := range function.CommaList(a.Value("header_list")) {
		name, v, _ := strings.Cut(line, ":")
		r.Header[strings.TrimSpace(name)] = strings.TrimSpace(v)
	}
	r.Limit, err = function.Timeout(a.Value("timeout"))
	return r, err
}

// longestWait limits how long a template may wait.
const longestWait = 10 * time.Minute

// wait repeats a request until it succeeds.
func (h http) wait(ctx context.Context, a function.Arguments) (*value.Map, error) {
	patience, err := function.Timeout(a.Value("wait_for"))
	if err != nil {
		return nil, err
	}
	pause, err := function.Timeout(a.Value("request_interval"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(patience, longestWait))
	defer cancel()
	for {
		answer, err := h.query(ctx, a)
		if err != nil || !answer.Has("error") {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, nil
		case <-time.After(max(pause, 100*time.Millisecond)):
		}
	}
}
