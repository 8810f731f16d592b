//! Which addresses may be connected to (ODP §11).

use crate::{Code, Error};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// Whether an address is one of the public internet.
///
/// Every block that the IANA registries of special addresses name is not: loopback, private, link-local, multicast, unspecified,
/// reserved, documentation, carrier NAT, benchmarking, unique local, site-local. Nor is any IPv6 form that carries an IPv4
/// address (mapped, compatible, NAT64 with either prefix, 6to4, Teredo), whatever it carries: it would be a second way to write
/// an address that is refused.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Blocks of IPv4 that are not public: first address and length of the prefix.
const SPECIAL_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // A hypervisor's own service, reachable from its guests alone.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved and broadcast together.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// Blocks within global unicast IPv6 (`2000::/3`) that are not public. Everything outside of it is not, either.
const SPECIAL_V6: &[(Ipv6Addr, u32)] = &[
    // Protocol assignments: Teredo, benchmarking, ORCHID and others.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    // The former 6bone.
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4
        .iter()
        .any(|(block, prefix)| (address.to_bits() ^ block.to_bits()) >> (32 - prefix) == 0)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let global = address.to_bits() >> 125 == 1;
    global
        && !SPECIAL_V6
            .iter()
            .any(|(block, prefix)| (address.to_bits() ^ block.to_bits()) >> (128 - prefix) == 0)
}

/// The host of a URL that may be fetched, and which addresses it may have.
///
/// `https` alone, with any port; `http` only in local development on a host that is literally `localhost`, `127.0.0.1` or
/// `[::1]`. No user information, no empty or dotted-off host. Spellings of IPv4 (octal, hexadecimal, short) are what they mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    host: Host<String>,
    /// The host is one of the three literal ones, in local development: only loopback addresses, and all of them.
    local: bool,
}

impl Destination {
    /// The destination of `url`.
    ///
    /// # Errors
    /// [`Code::UrlNotAllowed`] when the URL breaks a rule, [`Code::AddressNotAllowed`] when its host is an address that is not
    /// public.
    pub fn of(url: &Url, local: LocalDevelopment) -> Result<Self, Error> {
        let refuse = |why: &str| Error::new(Code::UrlNotAllowed, why).with_url(url.clone());
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("The URL must not hold user information."));
        }
        if ServiceOrigin::from_url(url, local).is_err() {
            return Err(refuse(
                "The URL must be https with a plain host; http is for localhost, 127.0.0.1 and [::1] in local development.",
            ));
        }
        let host = url
            .host()
            .ok_or_else(|| refuse("The URL must have a host."))?
            .to_owned();
        let destination = Self::of_host(host, local);
        if let Some(address) = destination.literal() {
            destination
                .check(&[address])
                .map_err(|error| error.with_url(url.clone()))?;
        }
        Ok(destination)
    }

    /// The destination for a name that is about to be resolved.
    pub(crate) fn of_name(name: &str, local: LocalDevelopment) -> Self {
        Self::of_host(Host::Domain(name.to_owned()), local)
    }

    fn of_host(host: Host<String>, local: LocalDevelopment) -> Self {
        let literal = match &host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => *address == Ipv4Addr::LOCALHOST,
            Host::Ipv6(address) => *address == Ipv6Addr::LOCALHOST,
        };
        Self {
            host,
            local: literal && local == LocalDevelopment::Allowed,
        }
    }

    /// The address that the host is, when it is no name.
    pub fn literal(&self) -> Option<IpAddr> {
        match self.host {
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
            Host::Domain(_) => None,
        }
    }

    /// Whether a connection to `address` is permitted.
    pub fn permits(&self, address: IpAddr) -> bool {
        if self.local {
            address.is_loopback()
        } else {
            is_public(address)
        }
    }

    /// Checks all addresses that the host resolved to. One that is not permitted condemns all: whoever mixes them does not
    /// decide which one is taken.
    ///
    /// # Errors
    /// [`Code::NameNotResolved`] without an address, [`Code::AddressNotAllowed`] with one that is not permitted.
    pub fn check(&self, addresses: &[IpAddr]) -> Result<Checked, Error> {
        if addresses.is_empty() {
            let why = format!("The host {} has no address.", self.host);
            return Err(Error::new(Code::NameNotResolved, why));
        }
        match addresses.iter().find(|address| !self.permits(**address)) {
            Some(address) => Err(self.refuse(*address)),
            None => Ok(Checked(addresses.to_vec())),
        }
    }

    pub(crate) fn refuse(&self, address: IpAddr) -> Error {
        let kind = if self.local { "a loopback" } else { "a public" };
        let why = format!(
            "The host {} leads to {address}, which is not {kind} address.",
            self.host
        );
        Error::new(Code::AddressNotAllowed, why)
    }
}

/// Addresses that were checked. Only to these may a connection go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked(Vec<IpAddr>);

impl Checked {
    /// Whether `peer` is among the addresses that were checked; a name that was bound anew meanwhile leads to another.
    pub fn admits(&self, peer: IpAddr) -> bool {
        self.0.contains(&peer)
    }

    /// The addresses.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.0
    }
}
