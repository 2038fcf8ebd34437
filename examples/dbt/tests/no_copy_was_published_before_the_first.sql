-- Returns copies that were published before the document said to be the first
select doc_id
from {{ ref('copies') }}
where delay < interval '0'
