package network

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/redirect"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Request is a GET request.
type Request struct {
	URL            string
	Header         map[string]string
	User, Password string
	Limit          time.Duration // 0 means one minute
	Unverified     bool          // accept any certificate
}

// Response is the answer to a request.
type Response struct {
	Status int
	Header map[string]string // by names in lower case
	Body   string
}

// maxPage is the maximum size of a page in bytes.
const maxPage = 16 << 20

// Get returns the answer to a GET request. A body that is longer than 16 MiB is an error.
func (n Network) Get(ctx context.Context, r Request) (Response, error) {
	limit := r.Limit
	if limit <= 0 {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return Response{}, fmt.Errorf("requesting a page: %w", err)
	}
	for name, v := range r.Header {
		request.Header.Set(name, v)
	}
	if r.User != "" {
		request.SetBasicAuth(r.User, r.Password)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = redirect.Dial(net.Dialer{Timeout: 30 * time.Second})
	if r.Unverified {
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // the caller has set Unverified
	}
	guarded := redirect.Guard(transport)
	defer guarded.CloseIdleConnections()
	got, err := (&http.Client{Transport: guarded, CheckRedirect: redirect.Follow(false)}).Do(request)
	if err != nil {
		return Response{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(io.LimitReader(got.Body, maxPage+1))
	if err == nil && len(body) > maxPage {
		err = fmt.Errorf("the page at %s is longer than %d MiB", redact.URLs(r.URL), maxPage>>20)
	}
	answer := Response{Status: got.StatusCode, Header: map[string]string{}, Body: string(body)}
	for name, values := range got.Header {
		answer.Header[strings.ToLower(name)] = strings.Join(values, ",")
	}
	return answer, err
}
