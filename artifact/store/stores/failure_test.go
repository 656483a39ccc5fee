package stores_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/minio"
	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
	"github.com/corpus-agent/corpus-agent/artifact/store/web"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// overHTTP returns the stores that use HTTP, all for the server at a URL.
func overHTTP(t *testing.T, server string) map[string]store.Store {
	t.Helper()
	fakes3.Login(t, "user", "secret")
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]store.Store{
		"s3":    s3.New(s3.Options{Bucket: "corpus", Endpoint: server}),
		"minio": minio.New(minio.Options{Host: u.Host, Bucket: "corpus", Plain: u.Scheme == "http"}),
		"https": web.New(u, web.Options{}),
	}
}

func getErr(ctx context.Context, s store.Store) error {
	body, _, err := s.Get(ctx, "deploy/app/1.tar.zst", 0)
	if err == nil {
		_ = body.Close() // the body is not used
	}
	return err
}

func again(err error) bool {
	var e *store.Error
	return errors.As(err, &e) && e.Again
}

type refusal struct {
	status  int
	code    string // the S3 error code; empty for a server that is not S3
	headers string // lines of "Name: value"
	kind    error
	again   bool
	hint    string // a part of the hint
}

func (r refusal) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for line := range strings.Lines(r.headers) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		w.Header().Set(name, value)
	}
	w.WriteHeader(r.status)
	if r.code != "" {
		fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>said the\u009b31m server</Message></Error>",
			r.code)
	}
}

func TestRefusals(t *testing.T) {
	for _, r := range []refusal{
		{404, "NoSuchKey", "", store.ErrNotFound, false, ""},
		{404, "NoSuchBucket", "", store.ErrNoStore, false, "bucket's name"},
		{403, "AccessDenied", "", store.ErrForbidden, false, "s3:GetObject"},
		{403, "InvalidAccessKeyId", "", store.ErrCredentials, false, "access key"},
		{403, "SignatureDoesNotMatch", "", store.ErrCredentials, false, "secret"},
		{400, "ExpiredToken", "", store.ErrCredentials, true, "expired"},
		{403, "RequestTimeTooSkewed", "Date: Mon, 02 Jan 2006 15:04:05 GMT", store.ErrCredentials, false,
			"ahead of the store's"},
		{503, "SlowDown", "Retry-After: 7", store.ErrThrottled, true, "overloaded"},
		{503, "", "Retry-After: 7", store.ErrThrottled, true, "overloaded"},
		{429, "", "Retry-After: 7", store.ErrThrottled, true, "overloaded"},
		{500, "InternalError", "", store.ErrUnreachable, true, ""},
		{502, "", "", store.ErrUnreachable, true, ""},
		{504, "", "", store.ErrUnreachable, true, ""},
		{412, "PreconditionFailed", "", store.ErrPrecondition, false, ""},
		{409, "ConditionalRequestConflict", "", store.ErrThrottled, true, ""},
		{301, "PermanentRedirect", "X-Amz-Bucket-Region: eu-west-1", store.ErrUnreachable, false, "?region=eu-west-1"},
		{400, "AuthorizationHeaderMalformed", "X-Amz-Bucket-Region: eu-west-1", store.ErrUnreachable,
			false, "?region=eu-west-1"},
		{501, "NotImplemented", "", store.ErrUnreachable, false, "lacks"},
		{400, "SomethingNew", "", store.ErrUnreachable, false, ""},
		{404, "", "", store.ErrNotFound, false, ""},
		{409, "", "", store.ErrThrottled, true, ""},
		{412, "", "", store.ErrPrecondition, false, ""},
		{405, "", "", store.ErrUnreachable, false, ""},
		{403, "", "", store.ErrForbidden, false, "policy"},
	} {
		t.Run(fmt.Sprint(r.status, r.code), func(t *testing.T) {
			server := httptest.NewServer(r)
			defer server.Close()
			for kind, st := range overHTTP(t, server.URL) {
				if kind == "https" && r.code != "" {
					continue // the store is not S3
				}
				checkRefusal(t, kind, r, getErr(t.Context(), st))
				checkDelete(t, kind, r, st.Delete(t.Context(), "deploy/app/1.tar.zst"))
			}
		})
	}
}

func checkRefusal(t *testing.T, kind string, r refusal, err error) {
	t.Helper()
	if !errors.Is(err, r.kind) || again(err) != r.again || !strings.Contains(diag.HintOf(err), r.hint) {
		t.Errorf("%s: %v\nhint: %s\nagain %v, want %v, %v, hint with %q", kind, err, diag.HintOf(err), again(err),
			r.kind, r.again, r.hint)
		return
	}
	if !strings.Contains(err.Error(), "deploy/app/1.tar.zst") {
		t.Errorf("%s: the error does not name the object: %v", kind, err)
	}
	if strings.Contains(err.Error(), "\u009b") {
		t.Errorf("%s: the error has control characters of the server: %q", kind, err)
	}
	var e *store.Error
	if strings.Contains(r.headers, "Retry-After") && errors.As(err, &e) && e.After != 7*time.Second {
		t.Errorf("%s: the wait is %v, want the requested 7 s", kind, e.After)
	}
}

// checkDelete checks that deleting an absent object is not an error, and that other errors are not treated like that.
func checkDelete(t *testing.T, kind string, r refusal, err error) {
	t.Helper()
	want := r.kind
	switch {
	case kind == "https":
		want = store.ErrReadOnly
	case r.kind == store.ErrNotFound:
		want = nil
	}
	if !errors.Is(err, want) {
		t.Errorf("%s: Delete: %v, want %v", kind, err, want)
	}
}

func TestNoListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for kind, st := range overHTTP(t, "http://"+address) {
		err := getErr(t.Context(), st)
		if !errors.Is(err, store.ErrUnreachable) || !again(err) || !strings.Contains(diag.HintOf(err), "nothing listens") {
			t.Errorf("%s: %v, hint %q", kind, err, diag.HintOf(err))
		}
	}
}

func TestNoSuchHost(t *testing.T) {
	for kind, st := range overHTTP(t, "http://store.invalid") {
		err := getErr(t.Context(), st)
		if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(diag.HintOf(err), "store.invalid") {
			t.Errorf("%s: %v, hint %q", kind, err, diag.HintOf(err))
		}
	}
}

func TestUnknownAuthority(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	defer server.Close()
	for kind, st := range overHTTP(t, server.URL) {
		err := getErr(t.Context(), st)
		if !errors.Is(err, store.ErrUnreachable) || again(err) || !strings.Contains(diag.HintOf(err), "authority") {
			t.Errorf("%s: %v, hint %q", kind, err, diag.HintOf(err))
		}
	}
}

func TestTLSRequestToPlainServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for kind, st := range overHTTP(t, strings.Replace(server.URL, "http:", "https:", 1)) {
		err := getErr(t.Context(), st)
		if !errors.Is(err, store.ErrUnreachable) || again(err) || !strings.Contains(diag.HintOf(err), "plain HTTP") {
			t.Errorf("%s: %v, hint %q", kind, err, diag.HintOf(err))
		}
	}
}

func TestDeadlineExceeded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	for kind, st := range overHTTP(t, server.URL) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		err := getErr(ctx, st)
		cancel()
		if !errors.Is(err, store.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) || again(err) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestTruncated checks that a response that breaks off is not treated as complete.
func TestTruncated(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		_, _ = w.Write(make([]byte, 500)) // the client may have disconnected
	}))
	defer server.Close()
	for kind, st := range overHTTP(t, server.URL) {
		body, _, err := st.Get(t.Context(), "key", 0)
		if err != nil {
			t.Fatal(err)
		}
		n, err := new(bytes.Buffer).ReadFrom(body)
		if n != 500 || !errors.Is(err, store.ErrUnreachable) || !again(err) {
			t.Errorf("%s: %d bytes, %v", kind, n, err)
		}
		_ = body.Close() // broken already
	}
}

// TestEndlessErrorPage checks that an error page that never ends does not fill the memory.
func TestEndlessErrorPage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		for chunk := bytes.Repeat([]byte("x"), 64<<10); r.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	for kind, st := range overHTTP(t, server.URL) {
		if err := getErr(t.Context(), st); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: %.2000v", kind, err)
		}
	}
}

// TestEndlessListing checks that a listing whose pages repeat ends.
func TestEndlessListing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<ListBucketResult><Name>corpus</Name><KeyCount>1</KeyCount><IsTruncated>true</IsTruncated>
			<NextContinuationToken>%d</NextContinuationToken>
			<Contents><Key>a</Key><Size>1</Size><ETag>"x"</ETag><LastModified>2026-01-02T03:04:05Z</LastModified></Contents></ListBucketResult>`,
			time.Now().UnixNano())
	}))
	defer server.Close()
	for kind, st := range overHTTP(t, server.URL) {
		if kind == "https" {
			continue // the store cannot list
		}
		seen, last := 0, error(nil)
		for _, last = range st.List(t.Context(), "") {
			seen++
		}
		if seen != 2 || !errors.Is(last, store.ErrUnreachable) {
			t.Errorf("%s: %d keys, %v", kind, seen, last)
		}
	}
}

func TestNoCredentials(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	stores := overHTTP(t, server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	for _, kind := range []string{"s3", "minio"} {
		err := getErr(t.Context(), stores[kind])
		if !errors.Is(err, store.ErrCredentials) || again(err) || !strings.Contains(diag.HintOf(err), "AWS_ACCESS_KEY_ID") {
			t.Errorf("%s: %v, hint %q", kind, err, diag.HintOf(err))
		}
	}
}

func TestNoSuchProfile(t *testing.T) {
	fakes3.Login(t, "user", "secret")
	err := getErr(t.Context(), s3.New(s3.Options{Bucket: "corpus", Profile: "nobody", Region: "us-east-1"}))
	if !errors.Is(err, store.ErrCredentials) || !strings.Contains(err.Error(), "nobody") ||
		!strings.Contains(diag.HintOf(err), "list-profiles") {
		t.Errorf("%v, hint %q", err, diag.HintOf(err))
	}
}

func TestNoRegion(t *testing.T) {
	fakes3.Login(t, "user", "secret")
	err := getErr(t.Context(), s3.New(s3.Options{Bucket: "corpus"}))
	if !errors.Is(err, store.ErrUnreachable) || again(err) || !strings.Contains(diag.HintOf(err), "?region=") {
		t.Errorf("%v, hint %q", err, diag.HintOf(err))
	}
}

// TestAnswerThatIsNotAListingIsAnError checks that the answer of another server to a list request is not read as an
// empty listing.
func TestAnswerThatIsNotAListingIsAnError(t *testing.T) {
	for name, page := range map[string]struct {
		kind, body string
		listing    bool
	}{
		"portal":    {"text/html", "<!DOCTYPE html><html><body>captive portal</body></html>", false},
		"nothing":   {"application/xml", "", false},
		"text":      {"text/plain", "welcome", false},
		"other XML": {"application/xml", `<?xml version="1.0"?><ListAllMyBucketsResult/>`, false},
		"empty": {"application/xml", "\n" + `<?xml version="1.0" encoding="UTF-8"?><!-- none --><ListBucketResult ` +
			`xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>corpus</Name></ListBucketResult>`, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", page.kind)
				_, _ = w.Write([]byte(page.body)) // the client may have disconnected
			}))
			defer server.Close()
			for kind, s := range overHTTP(t, server.URL) {
				if kind == "https" {
					continue // the store does not list
				}
				var failed error
				for _, err := range s.List(t.Context(), "rollouts/") {
					failed = err
				}
				if page.listing != (failed == nil) {
					t.Errorf("%s: %v", kind, failed)
				}
				if !page.listing && (!errors.Is(failed, store.ErrUnreachable) || !strings.Contains(failed.Error(),
					"not a listing") || !strings.Contains(diag.HintOf(failed), "answers in its place")) {
					t.Errorf("%s: %v, hint %q", kind, failed, diag.HintOf(failed))
				}
			}
		})
	}
}
