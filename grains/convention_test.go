package grains_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func convention(t testing.TB, form string) grains.Convention {
	t.Helper()
	c, err := grains.NewConvention(form)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const regionFirst = `(?P<region>[a-z]{3}\d)-(?P<service>[a-z]+)-(?<instance>[a-z]+)(\d+)?`

func TestParse(t *testing.T) {
	type id = grains.Identity
	for _, c := range []struct {
		form, hostname string
		want           grains.Identity
	}{
		{"", "myapp-testing-useast1-898900.example.com", id{"myapp", "testing", "useast1", "898900", "example.com"}},
		{"", "myapp-testing-useast1-898900", id{"myapp", "testing", "useast1", "898900", ""}},
		{"", "myapp-testing-useast1-898900.example.com.", id{"myapp", "testing", "useast1", "898900", "example.com"}},
		{"", "my-web-app-testing-useast1-0abc", id{"my-web-app", "testing", "useast1", "0abc", ""}},
		{"", "3scale-v2-eu1-1", id{"3scale", "v2", "eu1", "1", ""}},
		{"{service}-{instance}", "my-app-testing.example.com", id{"my-app", "testing", "", "", "example.com"}},
		{"{region}-{service}-{instance}-{node}", "useast1-my-app-testing-7", id{"my-app", "testing", "useast1", "7", ""}},
		{"srv-{service}_{instance}-{node}", "srv-my-app_testing-7", id{"my-app", "testing", "", "7", ""}},
		{`(?P<service>\w+)-(?P<instance>\w+)(?:-(?P<node>\d+))?`, "shop-live", id{"shop", "live", "", "", ""}},
		{regionFirst, "fra1-shop-live42.example.com", id{"shop", "live", "fra1", "", "example.com"}},
	} {
		got, err := grains.Parse(c.hostname, convention(t, c.form))
		if err != nil || got != c.want {
			t.Errorf("%s under %q is %+v, %v; want %+v", c.hostname, c.form, got, err, c.want)
		}
	}
}

func TestParseFailsClosed(t *testing.T) {
	for _, c := range []struct{ form, hostname, reason string }{
		{"", "ip-10-0-0-12", "an instance starts with a letter"},
		{"", "ip-10-0-0-12.ec2.internal", "an instance starts with a letter"},
		{"", "ip-172-31-4-200", "an instance starts with a letter"},
		{"", "i-0123456789abcdef0.ec2.internal", ""},
		{"", "localhost", ""},
		{"", "", ""},
		{"", ".example.com", ""},
		{"", "myapp-testing-prod-1", `ends in a digit, and "prod" does not`},
		{"", "myapp-testing-1useast-1", `"1useast" does not`},
		{"", "myapp-2testing-useast1-1", `"2testing" does not`},
		{"", "myapp-testing-useast1-", `"" does not`},
		{"", "-myapp-testing-useast1-1", `"-myapp" does not`},
		{"", "myapp.testing-useast1-1", ""},
		{"", "myapp-testing-useast1-1\n", `"1\n" does not`},
		{"", "../x-testing-useast1-1", ""},
		{"", "my/app-testing-useast1-1", `"my/app" does not`},
		{"", strings.Repeat("a", 300) + "-testing-useast1-1", ""},
		{"", strings.Repeat("a", 64) + "-testing-useast1-1", ""},
		{`(?P<service>.*)-(?P<instance>.*)`, "../../etc-x", ""},
		{`(?P<service>.*)-(?P<instance>.*)`, "app-", ""},
		{`(?P<service>a+)-(?P<instance>b+)`, "xa-bx", ""},
	} {
		got, err := grains.Parse(c.hostname, convention(t, c.form))
		var mismatch *grains.MismatchError
		if !errors.As(err, &mismatch) || got != (grains.Identity{}) {
			t.Errorf("%q under %q was parsed as %+v, %v", c.hostname, c.form, got, err)
			continue
		}
		if c.reason == "" != (mismatch.Reason == "") || !strings.Contains(mismatch.Reason, c.reason) {
			t.Errorf("%q: the reason is %q, want %q", c.hostname, mismatch.Reason, c.reason)
		}
	}
}

func TestMismatchHasHint(t *testing.T) {
	_, err := grains.Parse("web1.example.com", grains.Convention{})
	want := `hostname "web1.example.com" does not follow {service}-{instance}-{region}-{node}, such as ` +
		`myapp-testing-useast1-898900`
	if err == nil || err.Error() != want {
		t.Errorf("the error reads\n%v, want\n%v", err, want)
	}
	if hint := diag.HintOf(err); !strings.Contains(hint, "corpus-agent deploy SERVICE INSTANCE") {
		t.Errorf("the hint is %q", hint)
	}
	_, err = grains.Parse("web1", convention(t, regionFirst))
	if !strings.HasSuffix(err.Error(), "does not follow "+regionFirst) {
		t.Errorf("the error reads %v", err)
	}
}

func TestParseGroup(t *testing.T) {
	for _, c := range []struct{ form, name, want string }{
		{"", "myapp-testing-useast1", "myapp-testing-useast1"},
		{"", "my-web-app-testing-useast1", "my-web-app-testing-useast1"},
		{"{node}-{service}-{instance}-{region}", "myapp-testing-useast1", "myapp-testing-useast1"},
		{"h{node}-{service}-{instance}-{region}", "hmyapp-testing-useast1", "myapp-testing-useast1"},
		{"{service}-{node}-{instance}", "myapp-testing", "myapp-testing"},
		{"{service}-{instance}", "myapp-testing", "myapp-testing"},
		{regionFirst, "myapp-testing-useast1", "myapp-testing-useast1"},
	} {
		got, err := grains.ParseGroup(c.name, convention(t, c.form))
		if err != nil || got.Cluster() != c.want || got.Node != "" {
			t.Errorf("group %s under %q is %+v, %v", c.name, c.form, got, err)
		}
	}
	_, err := grains.ParseGroup("terraform-20240101", grains.Convention{})
	want := `auto scaling group "terraform-20240101" does not follow {service}-{instance}-{region}, such as ` +
		`myapp-testing-useast1`
	if err == nil || err.Error() != want {
		t.Errorf("the error reads\n%v, want\n%v", err, want)
	}
}

func TestBadConventionsAreExplained(t *testing.T) {
	for _, c := range []struct{ form, message, hint string }{
		{"{service}-{instance", "{instance is never closed", ""},
		{"{service}-{region}", "instance is missing", "at least service and instance"},
		{"web", "service is missing", "at least service and instance"},
		{"{service}-{instanc}", `there is no part called "instanc"`, `did you mean "instance"?`},
		{"{service}-{instance}-{datacentre}", `no part called "datacentre"`, "the parts are service, instance, region, node"},
		{"{service}-{instance}-{service}", "service is named twice", ""},
		{"{service}{instance}", "nothing stands between {service} and {instance}", ""},
		{"{service}-{instance}.{region}", "a dot", "its domain"},
		{"{service}/{instance}", `"/" cannot be in a hostname`, "regular expression"},
		{"{service}-{instance}}", `"}" cannot be in a hostname`, ""},
		{`(?P<service>[a-z]+-(?P<instance>x)`, "missing closing )", "RE2"},
		{`(?P<service>[a-z]+)`, "instance is missing", ""},
		{`(?P<service>a)(?P<instance>b)(?P<env>c)`, `no part called "env"`, ""},
	} {
		_, err := grains.NewConvention(c.form)
		if err == nil || !strings.Contains(err.Error(), c.message) || !strings.Contains(err.Error(), "hostname convention") {
			t.Errorf("%s: the error reads %v, want %q", c.form, err, c.message)
		}
		if hint := diag.HintOf(err); !strings.Contains(hint, c.hint) {
			t.Errorf("%s: the hint is %q, want %q", c.form, hint, c.hint)
		}
	}
}

func TestConventionsShowAnExampleThatConforms(t *testing.T) {
	for _, form := range []string{"", "{service}-{instance}", "{region}-{service}-{instance}-{node}",
		"a{node}-{service}_{instance}"} {
		c := convention(t, form)
		if _, err := grains.Parse(c.Example(), c); err != nil {
			t.Errorf("%s: its own example: %v", c, err)
		}
	}
}

func TestIdentityGrains(t *testing.T) {
	id, err := grains.Parse("myapp-testing-useast1-898900.example.com", grains.Convention{})
	if err != nil {
		t.Fatal(err)
	}
	want := "{'service_name': 'myapp', 'service_instance': 'testing', 'region': 'useast1', 'service_node': '898900', " +
		"'cluster_name': 'myapp-testing-useast1', 'service_group': 'myapp-testing'}"
	if got := value.Repr(id.Grains()); got != want {
		t.Errorf("grains are\n%s, want\n%s", got, want)
	}
}

func TestLaterLayersTakePrecedence(t *testing.T) {
	all := grains.Layers{
		Core:     value.NewMap("os", "Debian", "role", "core", "region", "core", "kernel", "Linux"),
		Static:   value.NewMap("role", "static", "rack", "static", "region", "static"),
		Custom:   value.NewMap("rack", "custom", "region", "custom"),
		Identity: grains.Identity{Service: "myapp", Instance: "testing", Region: "useast1", Node: "1"},
	}.Merge()
	for name, want := range map[string]string{"os": "Debian", "role": "static", "rack": "custom", "region": "useast1",
		"service_name": "myapp"} {
		if all.Value(name) != want {
			t.Errorf("%s is %v, want %s", name, all.Value(name), want)
		}
	}
	if got := (grains.Layers{}).Merge(); got.Len() != 0 {
		t.Errorf("the merge without layers is %v", value.Repr(got))
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"myapp-testing-useast1-898900.example.com", "ip-10-0-0-12", "", "....", "a-b-c1-d", "-",
		"a-b-c1-d.\xff", "é-b-c1-1"} {
		f.Add(seed)
	}
	others := []grains.Convention{
		convention(f, "{service}-{instance}"), convention(f, "x{node}-{instance}-{service}"),
		convention(f, `(?P<service>.*)-(?P<instance>.*)`),
	}
	f.Fuzz(func(t *testing.T, hostname string) {
		for i, c := range append(others, grains.Convention{}) {
			id, err := grains.Parse(hostname, c)
			if err != nil {
				continue
			}
			for _, part := range []string{id.Service, id.Instance} {
				if part == "" || strings.ContainsAny(part, "/\\\x00 \n") || strings.HasPrefix(part, ".") {
					t.Errorf("%q gives the part %q", hostname, part)
				}
			}
			if i < len(others) {
				continue
			}
			again, err := grains.Parse(id.String()+"."+id.Domain, grains.Convention{})
			if err != nil || again != id {
				t.Errorf("%q is %+v, whose name is %+v, %v", hostname, id, again, err)
			}
		}
	})
}

func FuzzNewConvention(f *testing.F) {
	for _, seed := range []string{grains.DefaultConvention, regionFirst, "{", "}", "{}", "{service}-{instance}{",
		"(?P<service>", "{node}-{service}-{instance}"} {
		f.Add(seed, "myapp-testing-useast1-1")
	}
	f.Fuzz(func(t *testing.T, form, hostname string) {
		c, err := grains.NewConvention(form)
		if err != nil {
			return
		}
		if id, err := grains.Parse(hostname, c); err == nil && (id.Service == "" || id.Instance == "") {
			t.Errorf("%q parses %q as %+v", form, hostname, id)
		}
		if _, err := grains.Parse(c.Example(), c); c.Example() != "" && err != nil {
			t.Errorf("%q: its own example: %v", form, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := grains.Parse("myapp-testing-useast1-898900.example.com", grains.Convention{}); err != nil {
			b.Fatal(err)
		}
	}
}
