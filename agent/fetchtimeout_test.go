package agent_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/web"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// The error of a fetch that exceeds fetch.timeout names the setting and says that the next fetch resumes.
func TestFetchTimeoutErrorNamesTheSetting(t *testing.T) {
	s := newServed(t)
	s.publish("1")
	s.expect(exit.OK)
	s.publish("2")
	s.Config.FetchTimeout = 2 * time.Second
	s.fault = half(true)
	s.store = store.Stack(web.New(s.address, web.Options{}), store.Settings{}) // with longer timeouts than the fetch
	_, err := s.deploy()
	if exit.Code(err) != exit.Unreachable || !strings.Contains(err.Error(), "fetch.timeout (2s)") {
		t.Errorf("exit code %d: %v", exit.Code(err), err)
	}
	if hint := diag.HintOf(err); !strings.Contains(hint, "next run continues") ||
		!strings.Contains(hint, "fetch.timeout") || diag.CodesOf(hint) != "C076" {
		t.Errorf("hint %q", hint)
	}
}

// The error about a store that stops answering has its URL.
func TestTimeoutNamesTheStore(t *testing.T) {
	s := newServed(t)
	s.publish("1")
	s.fault = func(_ *served, _ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	s.store = store.Stack(web.New(s.address, web.Options{}), store.Settings{
		Retry: store.RetryPolicy{Attempts: 1}, Timeout: store.TimeoutPolicy{Answer: 200 * time.Millisecond,
			Name: s.address.String()},
	})
	_, err := s.deploy()
	if err == nil || !strings.Contains(err.Error(), s.address.String()+"/metadata/") ||
		!strings.Contains(err.Error(), "nothing came for 200ms") {
		t.Errorf("the error is %v", err)
	}
}
