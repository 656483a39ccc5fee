package ahead

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestStatesGetWhatIsDownloadedAhead has three URLs: one that is being downloaded, one that fails, and one for which
// there is no worker yet.
func TestStatesGetWhatIsDownloadedAhead(t *testing.T) {
	arrive := make(chan struct{})
	asked := make(chan string, 10)
	d := Start(t.Context(), func(ctx context.Context, url string) (io.ReadCloser, error) {
		asked <- url
		select {
		case <-arrive:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if url == "fails" {
			return nil, errors.New("no route to host")
		}
		return io.NopCloser(strings.NewReader("content of " + url)), nil
	}, []string{"first", "fails", "third"})
	defer d.Close()
	<-asked
	<-asked
	if _, ok := d.Open(t.Context(), "third"); ok {
		t.Error("a download that has not begun is given to a state")
	}
	if _, ok := d.Open(t.Context(), "other"); ok {
		t.Error("a URL that was not expected is given to a state")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, ok := d.Open(ended, "first"); ok {
		t.Error("a state that ends waits for a download")
	}
	close(arrive)
	for range 2 {
		body, ok := d.Open(t.Context(), "first")
		if !ok {
			t.Fatal("the state does not get its download")
		}
		if data, err := io.ReadAll(body); string(data) != "content of first" || err != nil {
			t.Errorf("the state gets %q, %v", data, err)
		}
	}
	if _, ok := d.Open(t.Context(), "fails"); ok {
		t.Error("a failed download is given to a state")
	}
	if len(asked) > 0 {
		t.Errorf("%s, which the state downloads itself, is downloaded as well", <-asked)
	}
}

// TestCloseEndsDownloads checks that the end of a run does not wait for a server that does not answer.
func TestCloseEndsDownloads(t *testing.T) {
	d := Start(t.Context(), func(ctx context.Context, _ string) (io.ReadCloser, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, []string{"silent"})
	d.Close()
	if _, ok := d.Open(t.Context(), "silent"); ok {
		t.Error("a download that was stopped is given to a state")
	}
}
