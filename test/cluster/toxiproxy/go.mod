module staking-operator/toxiproxy

go 1.23.0

require github.com/Shopify/toxiproxy/v2 v2.5.0
