package ec2_test

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/grains/ec2"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const instance = "i-0abc1234def567890"

// metadata is a fake metadata service of an instance: version 1 is a plain GET, version 2 needs a token from a PUT.
type metadata struct {
	noV1, noV2 bool
	off        bool   // metadata is disabled for the instance
	tag        string // name of the group, if tags are allowed in metadata
	broken     int    // number of requests that are first answered with an error

	mu   sync.Mutex
	seen []string
}

const token = "AQAEAlice=="

func (m *metadata) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, r.Method+" "+r.URL.Path)
	switch {
	case m.off:
		http.Error(w, "", http.StatusForbidden)
	case m.broken > 0:
		m.broken--
		http.Error(w, "", http.StatusServiceUnavailable)
	case r.URL.Path == "/latest/api/token":
		m.token(w, r)
	case r.Header.Get("X-Aws-Ec2-Metadata-Token") != token && (m.noV1 || r.Header.Get("X-Aws-Ec2-Metadata-Token") != ""):
		http.Error(w, "", http.StatusUnauthorized)
	default:
		m.answer(w, r)
	}
}

func (m *metadata) token(w http.ResponseWriter, r *http.Request) {
	if m.noV2 || r.Method != http.MethodPut {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
	fmt.Fprint(w, token)
}

func (m *metadata) answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/latest/dynamic/instance-identity/document":
		fmt.Fprintf(w, `{"instanceId": %q, "region": "us-east-1", "availabilityZone": "us-east-1a", "version": "2017-09-30"}`,
			instance)
	case "/latest/meta-data/tags/instance/aws:autoscaling:groupName":
		if m.tag == "" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, m.tag)
	case "/latest/meta-data/iam/security-credentials/":
		fmt.Fprint(w, "myapp-testing")
	case "/latest/meta-data/iam/security-credentials/myapp-testing":
		fmt.Fprint(w,
			`{"Code": "Success", "AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "secret", "Token": "session", "Expiration": `+
				`"2099-01-01T00:00:00Z"}`)
	default:
		http.NotFound(w, r)
	}
}

// api is a fake of EC2's API for DescribeTags.
type api struct {
	group  string
	denied bool
	busy   int // number of requests that are first throttled
	asked  []string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.asked = append(a.asked, r.Form.Get("Action")+" "+r.Form.Get("Filter.1.Value.1")+" "+r.Form.Get("Filter.2.Value.1"))
	w.Header().Set("Content-Type", "text/xml")
	switch signed := r.Header.Get("Authorization"); {
	case !strings.HasPrefix(signed, "AWS4-HMAC-SHA256 Credential=ASIAEXAMPLE/") ||
		!strings.Contains(signed, "/us-east-1/ec2/aws4_request") || r.Header.Get("X-Amz-Security-Token") != "session":
		fault(w, http.StatusForbidden, "AuthFailure", "not signed with the role's credentials")
	case a.busy > 0:
		a.busy--
		fault(w, http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded.")
	case a.denied:
		fault(w, http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation.")
	case a.group == "":
		fmt.Fprint(w,
			`<DescribeTagsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId><tagSet/></`+
				`DescribeTagsResponse>`)
	default:
		fmt.Fprintf(w,
			`<DescribeTagsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</`+
				`requestId><tagSet><item><resourceId>%s</resourceId><resourceType>instance</`+
				`resourceType><key>aws:autoscaling:groupName</key><value>%s</value></item></tagSet></DescribeTagsResponse>`,
			instance, a.group)
	}
}

func fault(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w,
		`<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r</RequestID></Response>`,
		code, message)
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	// The environment of the machine that runs the tests must have no effect.
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
		"AWS_EC2_METADATA_DISABLED", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_EC2"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestIdentityFromMetadataAlone(t *testing.T) {
	for _, c := range []struct {
		name    string
		service *metadata
		allowV1 bool
	}{
		{"both versions", &metadata{}, false},
		{"version 2 only", &metadata{noV1: true}, false},
		{"version 1 only, allowed", &metadata{noV2: true}, true},
		{"version 2 only, 1 allowed", &metadata{noV1: true}, true},
		{"a service that stumbles", &metadata{broken: 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.service.tag = "myapp-testing-useast1"
			host := ec2.New(ec2.Options{Endpoint: serve(t, c.service), AllowV1: c.allowV1, API: "http://127.0.0.1:1"})
			id, origin, err := grains.Decide(t.Context(), grains.Request{Hostname: "ip-10-0-0-12.ec2.internal", Cloud: host})
			if err != nil || origin != grains.FromCloud {
				t.Fatalf("%v, %v", origin, err)
			}
			want := grains.Identity{Service: "myapp", Instance: "testing", Region: "useast1", Node: "0abc1234def567890",
				Domain: "ec2.internal"}
			if id != want {
				t.Errorf("identity is %+v, want %+v", id, want)
			}
		})
	}
}

// TestVersionOneRequiresOption checks that version 1, which also answers a program that an attacker makes fetch a
// URL, is only used if the options allow it.
func TestVersionOneRequiresOption(t *testing.T) {
	m := &metadata{noV2: true, tag: "myapp-testing-useast1"}
	_, _, err := ec2.New(ec2.Options{Endpoint: serve(t, m)}).Place(t.Context())
	if !errors.Is(err, ec2.ErrNoMetadata) || !strings.Contains(err.Error(), "has no version 2") ||
		!strings.Contains(diag.HintOf(err), "allow version 1") {
		t.Errorf("the error is %v, hint %q", err, diag.HintOf(err))
	}
	if slices.ContainsFunc(m.seen, func(s string) bool { return strings.HasPrefix(s, "GET") }) {
		t.Errorf("version 1 got the requests %q", m.seen)
	}
}

func TestGroupFromTheAPI(t *testing.T) {
	for _, c := range []struct {
		name          string
		api           api
		want          string
		message, hint string
	}{
		{"answers", api{group: "myapp-testing-useast1"}, "myapp-testing-useast1", "", ""},
		{"is busy first", api{group: "myapp-testing-useast1", busy: 1}, "myapp-testing-useast1", "", ""},
		{"has no tag", api{}, "", "instance " + instance + " is in no auto scaling group", ""},
		{"is not allowed", api{denied: true}, "", "ec2:DescribeTags fails: UnauthorizedOperation: You are not authorized",
			"allow instance tags in metadata"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := c.api
			m := &metadata{noV1: true}
			host := ec2.New(ec2.Options{Endpoint: serve(t, m), API: serve(t, &a)})
			got, err := host.Group(t.Context())
			if got != c.want || (err == nil) != (c.message == "") {
				t.Fatalf("group %q, %v", got, err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.message) || !strings.Contains(diag.HintOf(err), c.hint)) {
				t.Errorf("the error reads %v, hint %q", err, diag.HintOf(err))
			}
			if want := "DescribeTags " + instance + " aws:autoscaling:groupName"; a.asked[0] != want {
				t.Errorf("the request is %q, want %q", a.asked[0], want)
			}
		})
	}
}

func TestHangingAPICallIsAborted(t *testing.T) {
	host := ec2.New(ec2.Options{Endpoint: serve(t, &metadata{}), API: "http://" + silent(t),
		APITimeout: 200 * time.Millisecond})
	var err error
	took := shortest(2*time.Second, func() { _, err = host.Group(t.Context()) })
	if err == nil || took > 2*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
}

// shortest returns the duration of a call or, if that is more than limit, the shortest duration of ten calls: on a busy
// machine some take longer.
func shortest(limit time.Duration, call func()) time.Duration {
	took := time.Duration(math.MaxInt64)
	for range 10 {
		start := time.Now()
		call()
		if took = min(took, time.Since(start)); took <= limit {
			break
		}
	}
	return took
}

// silent returns an address that accepts connections and never responds.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestCallOutsideEC2FailsWithinASecond(t *testing.T) {
	for _, c := range []struct {
		name, endpoint, message string
	}{
		{"nothing listens", "http://127.0.0.1:1", "nothing answers at http://127.0.0.1:1: connection refused"},
		{"packets are dropped", "http://" + silent(t), "nothing answers at"},
		{"another service listens", serve(t, http.NotFoundHandler()), "has no version 2"},
		{"metadata is disabled", serve(t, &metadata{off: true}), "refuses to answer"},
		{"no URL", "::", "nothing answers at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var err error
			took := shortest(time.Second, func() { _, _, err = ec2.New(ec2.Options{Endpoint: c.endpoint}).Place(t.Context()) })
			if took > time.Second {
				t.Errorf("the call took %s", took)
			}
			if !errors.Is(err, ec2.ErrNoMetadata) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("the error reads %v, want %q", err, c.message)
			}
			if diag.HintOf(err) == "" {
				t.Error("the error has no hint")
			}
		})
	}
}

func TestDocumentWithoutInstanceIsRefused(t *testing.T) {
	m := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
			fmt.Fprint(w, token)
			return
		}
		fmt.Fprint(w, `{}`)
	})
	if _, _, err := ec2.New(ec2.Options{Endpoint: serve(t, m)}).Place(t.Context()); !errors.Is(err, ec2.ErrNoMetadata) {
		t.Errorf("the error is %v", err)
	}
}

func TestEndpointFromTheEnvironment(t *testing.T) {
	url := serve(t, &metadata{})
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url)
	region, node, err := ec2.New(ec2.Options{}).Place(t.Context())
	if err != nil || region != "useast1" || node != "0abc1234def567890" {
		t.Errorf("%s, %s, %v", region, node, err)
	}
	if !ec2.Likely(t.TempDir()) {
		t.Error("the metadata service in the environment is not used")
	}
}

func TestMetadataIsRequestedOnce(t *testing.T) {
	m := &metadata{tag: "myapp-testing-useast1"}
	host := ec2.New(ec2.Options{Endpoint: serve(t, m)})
	for range 3 {
		if _, _, err := host.Place(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"PUT /latest/api/token", "GET /latest/dynamic/instance-identity/document"}; !slices.Equal(m.seen,
		want) {
		t.Errorf("the requests are %q, want %q", m.seen, want)
	}
}

func TestEC2Detection(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "")
	for _, c := range []struct {
		file, text string
		want       bool
	}{
		{"sys/class/dmi/id/sys_vendor", "Amazon EC2\n", true},
		{"sys/class/dmi/id/bios_version", "4.11.amazon\n", true},
		{"sys/hypervisor/uuid", "ec2e1916-9099-7caf-fd21-012345abcdef\n", true},
		{"sys/class/dmi/id/sys_vendor", "QEMU\n", false},
		{"etc/hostname", "Amazon EC2\n", false},
	} {
		root := t.TempDir()
		file := filepath.Join(root, c.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if ec2.Likely(root) != c.want {
			t.Errorf("%s with %q: Likely is %v", c.file, c.text, !c.want)
		}
	}
}

var _ grains.Cloud = (*ec2.Host)(nil)
