package network

import (
	"net/netip"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// networks returns the networks of the host's addresses, with their sizes if verbose is true.
func (n network) networks(six bool) func(names any, loopback, verbose bool) (any, error) {
	return func(links any, loopback, verbose bool) (any, error) {
		prefixes, err := n.prefixes(six, function.CommaList(links), loopback)
		if err != nil {
			return nil, err
		}
		names, details := value.NewList(), value.NewMap()
		for _, p := range prefixes {
			text := p.Masked().String()
			if !details.Has(text) {
				names.Append(text)
				details.Set(text, networkDetails(p))
			}
		}
		if verbose {
			return details, nil
		}
		return names, nil
	}
}

func (n network) subnets(names any) ([]string, error) {
	wanted, err := function.Texts(names)
	if err != nil {
		return nil, err
	}
	return n.networkNames(false, wanted)
}

func (n network) subnets6() ([]string, error) { return n.networkNames(true, nil) }

func (n network) networkNames(six bool, links []string) ([]string, error) {
	all, err := n.prefixes(six, links, false)
	if err != nil {
		return nil, err
	}
	for i, p := range all {
		all[i] = p.Masked()
	}
	structsort.Func(all, netip.Prefix.Compare)
	names := []string{}
	for _, p := range slices.Compact(all) {
		names = append(names, p.String())
	}
	return names, nil
}

// inSubnet reports whether one of the host's addresses is in a network.
func (n network) inSubnet(cidr string) (bool, error) {
	for _, six := range []bool{false, true} {
		prefixes, err := n.prefixes(six, nil, false)
		if err != nil {
			return false, err
		}
		for _, p := range prefixes {
			if contains(cidr, p.Addr()) {
				return true, nil
			}
		}
	}
	return false, nil
}
