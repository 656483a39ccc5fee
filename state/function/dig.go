package function

import (
	"context"
	"strings"
)

// dig asks the domain name system. What cannot be resolved has no records, as in Salt.
type dig struct{ *Facts }

func digTable(f *Facts) Table {
	d := dig{f}
	return Table{
		"dig.A":        Of("host, nameserver=None", d.addresses("A")),
		"dig.AAAA":     Of("host, nameserver=None", d.addresses("AAAA")),
		"dig.PTR":      Of("host, nameserver=None", d.query("PTR")),
		"dig.TXT":      Of("host, nameserver=None", d.query("TXT")),
		"dig.CNAME":    Of("host, nameserver=None", d.alias),
		"dig.NS":       Of("domain, resolve=True, nameserver=None", d.nameServers),
		"dig.MX":       Of("domain, resolve=False, nameserver=None", d.mailServers),
		"dig.check_ip": Of("addr", isAddress),
	}
}

func (d dig) alias(ctx context.Context, name, server string) (string, error) {
	found, err := d.records(ctx, "CNAME", name, server)
	return strings.Join(found, "\n"), err
}

func (d dig) query(kind string) func(context.Context, string, string) ([]string, error) {
	return func(ctx context.Context, name, server string) ([]string, error) {
		return d.records(ctx, kind, name, server)
	}
}
