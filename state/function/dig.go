package function

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// dig asks the domain name system. What cannot be resolved has no records, as in Salt.
type dig struct{ *Facts }

func digTable(f *Facts) Table {
	d := dig{f}
	return Table{
		"dig.A":        Of("host, nameserver=None", d.addresses("A")),
		"dig.AAAA":     Of("host, nameserver=None", d.addresses("AAAA")),
		"dig.PTR":      Of("host, nameserver=None", d.records("PTR")),
		"dig.TXT":      Of("host, nameserver=None", d.records("TXT")),
		"dig.CNAME":    Of("host, nameserver=None", d.alias),
		"dig.NS":       Of("domain, resolve=True, nameserver=None", d.servers),
		"dig.MX":       Of("domain, resolve=False, nameserver=None", d.mail),
		"dig.check_ip": Of("addr", isAddress),
	}
}

// ask gives the records of a kind; the log is told why there are none.
func (d dig) ask(ctx context.Context, kind, name, server string) ([]string, error) {
	if d.Resolver == nil {
		d.log("warning", "dig."+kind+": there is nobody to ask")
		return []string{}, nil
	}
	found, err := d.Resolver.Lookup(ctx, kind, name, server)
	if err != nil {
		d.log("warning", "dig."+kind+": "+err.Error())
	}
	if found == nil {
		found = []string{}
	}
	return found, ctx.Err()
}

func (d dig) records(kind string) func(context.Context, string, string) ([]string, error) {
	return func(ctx context.Context, name, server string) ([]string, error) {
		return d.ask(ctx, kind, name, server)
	}
}

// addresses leaves out the aliases that stand before them.
func (d dig) addresses(kind string) func(context.Context, string, string) ([]string, error) {
	return func(ctx context.Context, name, server string) ([]string, error) {
		found, err := d.ask(ctx, kind, name, server)
		addresses := []string{}
		for _, record := range found {
			if isAddress(record) {
				addresses = append(addresses, record)
			}
		}
		return addresses, err
	}
}

func (d dig) alias(ctx context.Context, name, server string) (string, error) {
	found, err := d.ask(ctx, "CNAME", name, server)
	return strings.Join(found, "\n"), err
}

func (d dig) servers(ctx context.Context, domain string, resolve bool, server string) ([]string, error) {
	names, err := d.ask(ctx, "NS", domain, server)
	if !resolve || err != nil {
		return names, err
	}
	all := []string{}
	for _, name := range names {
		found, err := d.addresses("A")(ctx, name, server)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// mail lists preference and name of the mail servers, or their first address.
func (d dig) mail(ctx context.Context, domain string, resolve bool, server string) (*value.List, error) {
	found, err := d.ask(ctx, "MX", domain, server)
	all := value.NewList()
	for _, record := range found {
		preference, name, _ := strings.Cut(record, " ")
		if !resolve {
			all.Append(value.Strings(preference, name))
			continue
		}
		addresses, err := d.addresses("A")(ctx, name, server)
		if err != nil {
			return nil, err
		}
		if len(addresses) > 0 {
			all.Append(value.Strings(preference, addresses[0]))
		}
	}
	return all, err
}

// isAddress takes an address, or one with the length of a prefix.
func isAddress(v any) bool {
	text, ok := v.(string)
	if !ok {
		return false
	}
	host, bits, hasBits := text, "", false
	if i := strings.LastIndexByte(text, '/'); i >= 0 {
		host, bits, hasBits = text[:i], text[i+1:], true
	}
	a, err := netip.ParseAddr(host)
	if err != nil || !hasBits {
		return err == nil
	}
	n, err := strconv.Atoi(bits)
	if a.Is4() {
		return err == nil && 1 <= n && n <= 32
	}
	return err == nil && 8 <= n && n <= 128
}
