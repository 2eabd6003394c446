# Shared by scripts/serve and scripts/test, which source it: a Python, a virtual environment, packages.
# Expects $root, the checkout. Sets $python and, after make_venv, $venv.

say() { echo "$(basename "$0"): $*" >&2; }
die() { say "$@"; exit 1; }

# Run a command as root; fails when there is neither root nor a sudo that needs no password.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo "$@"
  else return 1; fi
}

# apt_install PACKAGE...: quiet; the list of packages is brought up to date once per run.
apt_install() {
  command -v apt-get >/dev/null && as_root true || return 1
  [ -n "${apt_updated:-}" ] || { as_root apt-get update -qq >/dev/null || return 1; apt_updated=yes; }
  say "installing with apt-get: $*"
  apt_log=$(mktemp)
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" >"$apt_log" 2>&1 ||
    { tail -n 5 "$apt_log" >&2; rm -f "$apt_log"; return 1; }
  rm -f "$apt_log"
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
can_make_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

find_python() {
  for python in ${PYTHON:-} python3.13 python3.12 python3.11 python3; do
    is_new_enough "$python" && return 0
  done
  return 1
}

# Find a Python of 3.11 or newer that can make virtual environments; install one where that is possible.
need_python() {
  find_python || { apt_install python3 python3-venv && find_python; } ||
    { apt_install python3.11 python3.11-venv && find_python; } ||
    die "no Python 3.11 or newer found; install it (Debian: python3 and python3-venv, as root) and try again"
  can_make_venv "$python" || apt_install python3-venv || true
  can_make_venv "$python" ||
    apt_install "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" || true
  can_make_venv "$python" ||
    die "$python cannot make virtual environments; install python3-venv (as root) and try again"
}

# make_venv EXTRAS: .venv with the project in it, e.g. make_venv "[dev]". Quick when nothing has changed.
make_venv() {
  venv=${PYRITEMQ_VENV:-$root/.venv}
  wanted="$1 $(cksum <"$root/pyproject.toml") $root"
  if [ -x "$venv/bin/pyritemq" ] && grep -qsxF "$wanted" "$venv/.installed"; then return 0; fi
  need_python
  [ -x "$venv/bin/python" ] && is_new_enough "$venv/bin/python" || "$python" -m venv --clear "$venv"
  # Editable needs the links of .editable; a checkout without symbolic links gets a plain install.
  editable=-e
  [ -d "$root/.editable/pyritemq/server/" ] || editable=
  say "installing PyriteMQ$1 into $venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check $editable "$root$1" ||
    die "pip could not install the project; see the lines above"
  printf '%s\n' "$wanted" " ${wanted#"$1 "}" >>"$venv/.installed"  # with extras means also without
}
