package wire

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// InOrder ends a listing after an error, and when it does not advance, since it could then continue forever.
func (c *Call) InOrder(listing iter.Seq2[store.Info, error]) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		last := ""
		for info, err := range listing {
			if err == nil && info.Key <= last {
				yield(store.Info{}, c.Malformed("it listed %.80q after %.80q", info.Key, last))
				return
			}
			last = info.Key
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// notListing is the error of an answer to a list request that is not a listing. The clients read it as an empty one.
type notListing struct{ kind string }

func (e notListing) Error() string {
	return fmt.Sprintf("the answer to a list request is not a listing (Content-Type %.60q): the store did not answer",
		e.kind)
}

// notObject is the error of an answer to a request for an object that has a status of success and lacks what every
// store sends with an object.
type notObject struct{}

func (notObject) Error() string {
	return "the answer is not one of an object store: the store did not answer"
}

// NotObject returns the error for a response with a status of success that is not that of a store.
func (c *Call) NotObject() error { return c.Fail(notObject{}) }

// lists reports whether a request asks for a page of a listing.
func lists(req *http.Request) bool { return strings.Contains(req.URL.RawQuery, "list-type=") }

// headOfListing is how many bytes at the beginning of a listing have its first element.
const headOfListing = 1 << 10

// checkListing refuses a successful answer to a list request whose first element is not that of a listing, such as the
// page of a captive portal.
func checkListing(req *http.Request, resp *http.Response) error {
	if !lists(req) || resp.StatusCode >= http.StatusMultipleChoices {
		return nil
	}
	body := bufio.NewReaderSize(resp.Body, headOfListing)
	head, _ := body.Peek(headOfListing) // an error is reported again where the client reads the body
	resp.Body = cut{body, resp.Body}
	d := xml.NewDecoder(bytes.NewReader(head))
	for {
		token, err := d.RawToken()
		if err != nil {
			return notListing{resp.Header.Get("Content-Type")}
		}
		if start, ok := token.(xml.StartElement); ok {
			if start.Name.Local != "ListBucketResult" {
				return notListing{resp.Header.Get("Content-Type")}
			}
			return nil
		}
	}
}
