package ec2

import (
	"net"
	"net/http"
	"time"
)

// A line sends requests to the metadata service. It records the status of the last response, which the client's errors
// contain only in their text.
type line struct {
	client http.Client
	status int   // status of the last response; 0 if there was none
	err    error // reason why there was none
}

// newLine returns a line with short time limits, since no server responds outside of EC2, and without a proxy: the
// metadata would be that of the proxy's host.
func newLine() *line {
	return &line{client: http.Client{
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 250 * time.Millisecond}).DialContext,
			ResponseHeaderTimeout: 500 * time.Millisecond,
			DisableKeepAlives:     true,
		},
		// A captive portal, which redirects to a login page, is not a metadata service.
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
