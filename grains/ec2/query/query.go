// Package query is a client for the AWS services that use the query protocol: requests are forms, responses are XML.
//
// The requests are few and small, so they are written here, and only signed and authorized by the AWS SDK: the SDK's
// own clients would add megabytes to a host's program. Credentials, region and endpoints come from the SDK's sources.
package query

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Client is a client of one service.
type Client struct {
	Account aws.Config
	Service string // such as ec2
	Version string // of the service's API
	// Variables are environment variables that may set another endpoint; the first one that is set is used.
	Variables []string
	// Endpoint is another endpoint; it overrides the environment.
	Endpoint string
	// Pause is the wait after the first attempt, and longer after each further one; 2 s by default.
	Pause time.Duration
}

// tries is the maximum number of attempts of a request.
const tries = 5

// Call repeats a request until it gets a response, or a fault that a retry would not fix.
func (c *Client) Call(ctx context.Context, action string, form url.Values) ([]byte, error) {
	form.Set("Action", action)
	form.Set("Version", c.Version)
	for try := 1; ; try++ {
		data, err := c.once(ctx, form)
		var said *Fault
		if err == nil || try == tries || errors.As(err, &said) && !said.passing() || !c.Wait(ctx, try) {
			return data, err
		}
	}
}

// Wait pauses for factor times the first pause, and reports whether the context allowed it.
func (c *Client) Wait(ctx context.Context, factor int) bool {
	wait := c.Pause
	if wait == 0 {
		wait = 2 * time.Second
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait * time.Duration(factor)):
		return true
	}
}

// mostAnswer is the maximum size, in bytes, of a response.
const mostAnswer = 1 << 20

// client returns the HTTP client of the account's configuration; the default is used if that has none.
func (c *Client) client() aws.HTTPClient {
	if c.Account.HTTPClient != nil {
		return c.Account.HTTPClient
	}
	return awshttp.NewBuildableClient()
}

func (c *Client) once(ctx context.Context, form url.Values) ([]byte, error) {
	body := form.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	credentials, err := c.Account.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, diag.Credentials.Hint(fmt.Errorf("AWS credentials: %w", err),
			"give the instance a role, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), c.Service,
		c.Account.Region, time.Now()); err != nil {
		return nil, fmt.Errorf("signing the request: %w", err)
	}
	resp, err := c.client().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil || resp.StatusCode == http.StatusOK {
		return data, err
	}
	return nil, faultOf(resp.StatusCode, data)
}

func (c *Client) endpoint() string {
	if c.Endpoint != "" {
		return strings.TrimSuffix(c.Endpoint, "/") + "/"
	}
	for _, name := range append(c.Variables, "AWS_ENDPOINT_URL") {
		if at := os.Getenv(name); at != "" {
			return strings.TrimSuffix(at, "/") + "/"
		}
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(c.Account.Region, "cn-") {
		domain += ".cn"
	}
	return "https://" + c.Service + "." + c.Account.Region + "." + domain + "/"
}

// Fault is an error response of a service.
type Fault struct {
	Status  int
	Code    string
	Message string
}

// faultOf parses a fault in either of the two forms of services. If it is not XML, the fault has only the status.
func faultOf(status int, data []byte) *Fault {
	var answer struct {
		One  []said `xml:"Error"`
		Many []said `xml:"Errors>Error"`
	}
	f := &Fault{Status: status}
	if xml.NewDecoder(bytes.NewReader(data)).Decode(&answer) != nil {
		return f
	}
	for _, s := range append(answer.One, answer.Many...) {
		f.Code, f.Message = s.Code, s.Message
	}
	return f
}

type said struct{ Code, Message string }

func (f *Fault) Error() string {
	if f.Code == "" {
		return "it answered with status " + strconv.Itoa(f.Status)
	}
	return f.Code + ": " + f.Message
}

// passing reports whether a retry may succeed.
func (f *Fault) passing() bool {
	return f.Status >= 500 || f.Status == http.StatusTooManyRequests || strings.Contains(f.Code, "Throttl")
}
