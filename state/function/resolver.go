package function

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Records returns the records of a kind. If there are none, the reason is logged.
func (f *Facts) Records(ctx context.Context, kind, name, server string) ([]string, error) {
	if f.Resolver == nil {
		f.WriteLog("warning", "dig."+kind+": no resolver is available")
		return []string{}, nil
	}
	found, err := f.Resolver.Lookup(ctx, kind, name, server)
	if err != nil {
		f.WriteLog("warning", "dig."+kind+": "+err.Error())
	}
	if found == nil {
		found = []string{}
	}
	return found, ctx.Err()
}

// Addresses returns a function that returns the addresses of a name, without the aliases that lead to them.
func (f *Facts) Addresses(kind string) func(context.Context, string, string) ([]string, error) {
	return func(ctx context.Context, name, server string) ([]string, error) {
		found, err := f.Records(ctx, kind, name, server)
		addresses := []string{}
		for _, record := range found {
			if IsAddress(record) {
				addresses = append(addresses, record)
			}
		}
		return addresses, err
	}
}

// NameServers returns the name servers of a domain, or with resolve their addresses.
func (f *Facts) NameServers(ctx context.Context, domain string, resolve bool, server string) ([]string, error) {
	names, err := f.Records(ctx, "NS", domain, server)
	if !resolve || err != nil {
		return names, err
	}
	all := []string{}
	for _, name := range names {
		found, err := f.Addresses("A")(ctx, name, server)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// MailServers returns the preference and name of mail servers, or with resolve their first address.
func (f *Facts) MailServers(ctx context.Context, domain string, resolve bool, server string) (*value.List, error) {
	found, err := f.Records(ctx, "MX", domain, server)
	all := value.NewList()
	for _, record := range found {
		preference, name, _ := strings.Cut(record, " ")
		if !resolve {
			all.Append(value.Strings(preference, name))
			continue
		}
		addresses, err := f.Addresses("A")(ctx, name, server)
		if err != nil {
			return nil, err
		}
		if len(addresses) > 0 {
			all.Append(value.Strings(preference, addresses[0]))
		}
	}
	return all, err
}

// IsAddress reports whether v is an address, with or without a prefix length.
func IsAddress(v any) bool {
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
