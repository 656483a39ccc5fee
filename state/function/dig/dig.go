// Package dig implements dig.*: records of the domain name system.
package dig

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
)

// dig queries the domain name system. A name that cannot be resolved has no records, as in Salt.
type dig struct{ *function.Facts }

// Functions returns the functions of dig that templates may call.
func Functions(f *function.Facts) function.Table {
	d := dig{f}
	return function.Table{
		"dig.A":        function.Of("host, nameserver=None", d.Addresses("A")),
		"dig.AAAA":     function.Of("host, nameserver=None", d.Addresses("AAAA")),
		"dig.PTR":      function.Of("host, nameserver=None", d.query("PTR")),
		"dig.TXT":      function.Of("host, nameserver=None", d.query("TXT")),
		"dig.CNAME":    function.Of("host, nameserver=None", d.alias),
		"dig.NS":       function.Of("domain, resolve=True, nameserver=None", d.NameServers),
		"dig.MX":       function.Of("domain, resolve=False, nameserver=None", d.MailServers),
		"dig.check_ip": function.Of("addr", function.IsAddress),
	}
}

func (d dig) alias(ctx context.Context, name, server string) (string, error) {
	found, err := d.Records(ctx, "CNAME", name, server)
	return strings.Join(found, "\n"), err
}

func (d dig) query(kind string) func(context.Context, string, string) ([]string, error) {
	return func(ctx context.Context, name, server string) ([]string, error) {
		return d.Records(ctx, kind, name, server)
	}
}
