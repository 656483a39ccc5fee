package grains

import "github.com/corpus-agent/corpus-agent/state/host/links"

// interfaces returns the links of this machine with their addresses.
func interfaces() ([]Interface, error) {
	found, err := links.All()
	if err != nil {
		return nil, err
	}
	all := make([]Interface, len(found))
	for i, l := range found {
		all[i] = Interface{Name: l.Name, Hardware: l.Hardware}
		for _, a := range l.Addresses {
			all[i].add(a)
		}
	}
	return all, nil
}

func (i *Interface) add(a links.Address) {
	switch ip := a.Addr(); {
	case ip.Is6():
		i.IPv6 = append(i.IPv6, ip)
	case a.Secondary:
		i.Secondary = append(i.Secondary, ip)
	default:
		i.IPv4 = append(i.IPv4, ip)
	}
}
