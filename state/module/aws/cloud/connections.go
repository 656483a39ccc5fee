package cloud

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Limits of the answers of AWS, or of a server in its place.
const (
	longestAnswer = 30 * time.Second // of a request, until its answer is read
	largestAnswer = 64 << 20         // in bytes, when decompressed
	mostRedirects = 3
	mostPages     = 10_000
)

// connections is the HTTP client of an account. All clients of the account share its connections: a client that is
// given the SDK's own type makes connections of its own.
type connections struct{ client sdk.HTTPClient }

// limited returns the client for the requests of an account, with the certificates of given, which the SDK made if the
// environment names some, and nil otherwise.
func limited(given sdk.HTTPClient) sdk.HTTPClient {
	buildable, ok := given.(*awshttp.BuildableClient)
	if given != nil && !ok {
		return connections{given}
	}
	if buildable == nil {
		buildable = awshttp.NewBuildableClient()
	}
	return connections{&http.Client{Transport: buildable.GetTransport(), Timeout: longestAnswer,
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			if len(via) > mostRedirects || to.URL.Host != via[0].URL.Host { // the request is signed for its host
				return http.ErrUseLastResponse
			}
			return nil
		}}}
}

// Do implements sdk.HTTPClient.
func (c connections) Do(request *http.Request) (*http.Response, error) {
	response, err := c.client.Do(request)
	if err == nil {
		response.Body = &limitedBody{ReadCloser: response.Body, left: largestAnswer}
	}
	return response, err
}

// limitedBody fails once more than the largest answer has been read.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer is larger than %s", diag.Size(largestAnswer))
	}
	return n, err
}

// errPages is the error of a list that does not end.
var errPages = errors.New("the list of AWS does not end: each of its pages names another one")
