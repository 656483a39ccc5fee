package wire

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-0/1", "bytes 5-9/10", "bytes 5-9/*", "bytes */10", "bytes 9-5/10", "bytes -1-5/10",
		"", "bytes 0-9223372036854775807/*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		start, end, size, err := parseContentRange(s)
		if err == nil && (start < 0 || end < start || size >= 0 && end >= size) {
			t.Errorf("%q: %d to %d of %d", s, start, end, size)
		}
	})
}

func TestUpload(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		source io.Reader
		size   int64
		want   string
		err    string
	}{
		"right":          {strings.NewReader("12345"), 5, "12345", ""},
		"byte by byte":   {iotest.OneByteReader(strings.NewReader("12345")), 5, "12345", ""},
		"end with data":  {iotest.DataErrReader(strings.NewReader("12345")), 5, "12345", ""},
		"empty":          {strings.NewReader(""), 0, "", ""},
		"short":          {strings.NewReader("123"), 5, "123", "2 bytes before"},
		"long":           {strings.NewReader("123456"), 5, "", "more bytes"},
		"long by far":    {strings.NewReader(strings.Repeat("x", 200_000)), 5, "", "more bytes"},
		"empty, and not": {strings.NewReader("x"), 0, "", "more bytes"},
		"broken":         {iotest.ErrReader(broken), 5, "", "broken"},
		"broken late":    {io.MultiReader(strings.NewReader("12"), iotest.ErrReader(broken)), 5, "12", "broken"},
		"broken at end":  {io.MultiReader(strings.NewReader("12345"), iotest.ErrReader(broken)), 5, "", "broken"},
	} {
		u, err := NewUpload(c.source, c.size)
		var got []byte
		if err == nil {
			got, err = io.ReadAll(u)
			if fault := u.Release(); (fault == nil) != (err == nil) {
				t.Errorf("%s: read with %v, released with %v", name, err, fault)
			}
			if _, err := u.Read(make([]byte, 1)); err != io.ErrClosedPipe {
				t.Errorf("%s: read after release: %v", name, err)
			}
		}
		if c.err == "" && (err != nil || string(got) != c.want) || c.err != "" &&
			(err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
		if c.err != "" && int64(len(got)) >= max(c.size, 1) {
			t.Errorf("%s: the server gets all %d bytes of a failed upload", name, len(got))
		}
	}
}

func TestRetryAfterHeader(t *testing.T) {
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-3": 0, "soon": 0, "99999999999999999": 24 * time.Hour,
		in(time.Minute): time.Minute, in(-time.Hour): 0,
	} {
		got := answerOf(&http.Response{Header: http.Header{"Retry-After": {value}}}).after
		if diff := got - want; diff < -2*time.Second || diff > 2*time.Second {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// TestBodiesAreBounded checks how much of a body that a client reads into memory is read of a server that never ends.
func TestBodiesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		url    string
		status int
		want   int64 // bytes; 0 for all
	}{
		"an error":              {"https://store/key", http.StatusInternalServerError, errorLimit},
		"an error of a listing": {"https://store/bucket?list-type=2", http.StatusForbidden, errorLimit},
		"a redirect":            {"https://store/key", http.StatusFound, errorLimit},
		"a listing":             {"https://store/bucket?list-type=2", http.StatusOK, listingLimit},
		"an object":             {"https://store/key", http.StatusOK, 0},
		"a part of an object":   {"https://store/key", http.StatusPartialContent, 0},
	} {
		req, err := http.NewRequest(http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		const sent = listingLimit + 1000
		resp := &http.Response{StatusCode: c.status, Body: io.NopCloser(io.LimitReader(endless{}, sent))}
		bound(req, resp)
		n, err := io.Copy(io.Discard, resp.Body)
		if want := cmp.Or(c.want, sent); n != want || err != nil {
			t.Errorf("of %s, %d bytes are read (%v), want %d", name, n, err, want)
		}
	}
}

// endless is a body that does not end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
