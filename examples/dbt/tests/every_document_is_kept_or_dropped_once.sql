-- Returns documents that are both kept and dropped, or neither
select documents.doc_id
from {{ source('nearsim', 'documents') }} as documents
left join {{ ref('distinct_documents') }} as kept on kept.doc_id = documents.doc_id
left join {{ ref('copies') }} as dropped on dropped.doc_id = documents.doc_id
where documents.collection = '{{ var("collection") | replace("'", "''") }}'
    and documents.profile = '{{ var("profile") | replace("'", "''") }}'
    and (kept.doc_id is null) = (dropped.doc_id is null)
