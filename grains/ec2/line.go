package ec2

import (
	"net"
	"net/http"
	"time"
)

// A line carries requests to the metadata service. It remembers how the last one went, because the
// client's own errors say so only in words.
type line struct {
	client http.Client
	status int   // of the last answer; 0 when there was none
	err    error // why there was none
}

// newLine makes a line that gives up early, since off EC2 no server answers, and that never
// goes through a proxy: what a proxy's metadata service says is about the proxy.
func newLine() *line {
	return &line{client: http.Client{
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 250 * time.Millisecond}).DialContext,
			ResponseHeaderTimeout: 500 * time.Millisecond,
			DisableKeepAlives:     true,
		},
		// A captive portal, which redirects to a login page, is not metadata service.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Do sends one request.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	answer, err := l.client.Do(r)
	l.status, l.err = 0, err
	if answer != nil {
		l.status = answer.StatusCode
	}
	return answer, err
}
